"""`penchant study`: a study with people in a browser; it needs the extra `study`."""

from penchant.errors import DataError

try:
    from penchant.study.commands import command
except ModuleNotFoundError as error:
    raise DataError(
        f"penchant study needs {error.name}, which is not installed: "
        "pip install 'penchant[study]' brings everything"
    ) from None

__all__ = ["command"]
