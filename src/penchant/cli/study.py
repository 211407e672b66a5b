"""`penchant study`: a study with people in a browser; it needs the extra `study`."""

from penchant.study.commands import command

__all__ = ["command"]
