"""The plots and Tune."""
