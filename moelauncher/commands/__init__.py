"""The command line's commands, one file each. They wire the rooms and hold no logic of their own.

Each has ``add_arguments(parser)`` and ``run(options) -> exit status``; ``cli`` names them.
"""
