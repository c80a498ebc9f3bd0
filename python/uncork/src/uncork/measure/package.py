"""The installed package."""

from importlib.metadata import PackageNotFoundError, version


def package_version() -> str:
    """This package's version."""
    try:
        return version("uncork")
    except PackageNotFoundError:
        return "0"
