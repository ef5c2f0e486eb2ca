"""MoE Launcher: see where every byte of a Mixture-of-Experts model goes, and move it.

The house, one room a folder (ARCHITECTURE.md has the plan): ``core`` says what things
mean, ``engine`` runs llama.cpp, ``meters`` read the machine, ``gui`` shows it; ``app``
and ``cli`` wire them together.
"""

__version__ = "0.1.0"
