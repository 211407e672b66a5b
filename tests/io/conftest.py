import pytest


@pytest.fixture
def write(tmp_path):
    """Writes a text, or bytes, into a file; returns its path."""

    def write(content, name="v.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
