"""Build the archives of a release, install each alone, use it: `make check-all PARTS=release`."""

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
USE = """
import penchant as pc
data = pc.Comparisons.from_pairs(["tea", "tea", "milk"], ["milk", "water", "water"])
gp = pc.PreferenceGP().fit(None, data)
assert gp.rank()[0].item == "tea"
gp.save("m.penchant")
assert pc.load("m.penchant").rank()[0].item == "tea"
print(pc.__version__)
"""


def run(*words: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def main() -> None:
    dist = ROOT / "dist"
    run(sys.executable, "-m", "pip", "install", "--quiet", "build", "twine", cwd=ROOT)
    for old in dist.glob("*"):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", dist, cwd=ROOT)
    archives = sorted(dist.iterdir())
    if "GITHUB_REPOSITORY" in os.environ:
        (wheel,) = dist.glob("*.whl")
        with zipfile.ZipFile(wheel) as file:
            (metadata,) = (name for name in file.namelist() if name.endswith("/METADATA"))
            if b"Project-URL: Source" not in file.read(metadata):
                sys.exit("the wheel does not say where its source is")
    run(sys.executable, "-m", "twine", "check", "--strict", *archives, cwd=ROOT)
    for archive in archives:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            venv.create(place / "env", with_pip=True)
            binaries = place / "env" / ("Scripts" if sys.platform == "win32" else "bin")
            run(binaries / "python", "-m", "pip", "install", "--quiet", archive, cwd=place)
            version = run(binaries / "python", "-c", USE, cwd=place)
            run(binaries / "penchant", "doctor", cwd=place)
            megabytes = archive.stat().st_size / 1e6
            print(f"{archive.name}: {megabytes:.2f} MB, version {version}, installed and used")


if __name__ == "__main__":
    main()
