"""Where the bytes go: slider, placement, forecast, plan, and what loads taught."""
