"""Builds the wheel (PEP 517), with the library inside, and needs nothing but Python and CMake.

`pip install ./bindings/python` compiles the runtime with CMake, in build/wheel of the repository. With AERIE_DIR set to a
build tree or an installed prefix, its libraries are taken instead; AERIE_WHEEL_LIBRARY=none leaves them out (the
training tools alone; the runtime binding then finds the system's library).
"""

import base64
import hashlib
import os
import shutil
import subprocess
import sysconfig
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIBRARIES = ("libaerie.so.1", "libaerie-text.so.1")


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    return project


def _metadata(project: dict[str, Any]) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}",
             f"Summary: {project['description']}", f"Requires-Python: {project['requires-python']}",
             f"License: {project['license']['text']}"]
    for extra, requirements in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {requirement}; extra == "{extra}"' for requirement in requirements]
    return "\n".join(lines) + "\n"


def _installed(prefix: Path) -> Path:
    """Where libaerie.so.1 lies: lib or lib/<multiarch>."""
    for library in sorted(prefix.glob("lib*/**/" + LIBRARIES[0])):
        return library.parent
    raise SystemExit(f"{prefix}: no {LIBRARIES[0]} in its lib")


def _compiled(into: Path) -> Path:
    if not (ROOT / "CMakeLists.txt").exists():
        raise SystemExit(f"{ROOT}: no CMakeLists.txt; build in the repository, or set AERIE_DIR to an installed Aerie")
    if not shutil.which("cmake"):
        raise SystemExit("no cmake: `bash .ci/setup.sh` installs what building Aerie needs")
    build = ROOT / "build" / "wheel"
    ninja = ["-G", "Ninja"] if shutil.which("ninja") else []
    subprocess.run(["cmake", "-S", ROOT, "-B", build, *ninja, "-DCMAKE_BUILD_TYPE=Release", "-DAERIE_CUDA=OFF"], check=True)
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)
    subprocess.run(["cmake", "--build", build, "--target", "runtime", "--parallel", jobs], check=True)
    subprocess.run(["cmake", "--install", build, "--prefix", into, "--component", "runtime"], check=True)
    return _installed(into)


def _library_files(scratch: Path) -> dict[str, Path]:
    """Name in the wheel: file. A wheel holds no links, so a library goes in under the name it is loaded by."""
    if os.environ.get("AERIE_WHEEL_LIBRARY") == "none":
        return {}
    given = os.environ.get("AERIE_DIR")
    folder = _installed(Path(given).resolve()) if given else _compiled(scratch / "prefix")
    files = {f"aerie/_lib/{name}": folder / name for name in LIBRARIES}
    if (cuda := folder / "aerie/libaerie-cuda.so").exists():
        files[f"aerie/_lib/aerie/{cuda.name}"] = cuda
    files |= {f"aerie/_lib/aerie/drafters/{file.name}": file for file in sorted((folder / "aerie/drafters").glob("*.so"))}
    for name, file in files.items():
        stripped = scratch / name
        stripped.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, stripped)
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", stripped], check=True)
        files[name] = stripped
    return files


def _write(wheel: Path, files: dict[str, Path | str], info: str) -> None:
    record = ""
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(data)}\n"
            archive.writestr(name, data)
        archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")


def _build(directory: str, files: dict[str, Path | str], binary: bool) -> str:
    project = _project()
    tag = "py3-none-" + (sysconfig.get_platform().replace("-", "_").replace(".", "_") if binary else "any")
    stem = f"{project['name']}-{project['version']}"
    info = f"{stem}.dist-info"
    files |= {f"{info}/METADATA": _metadata(project),
              f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: aerie\nRoot-Is-Purelib: {str(not binary).lower()}\nTag: {tag}\n",
              f"{info}/LICENSE": ROOT / "LICENSE"}
    if binary:  # with the licences of what is compiled in
        files[f"{info}/COPYRIGHT"] = ROOT / "capi/debian/copyright"
    name = f"{stem}-{tag}.whl"
    _write(Path(directory) / name, files, info)
    return name


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    package = sorted(file for file in (HERE / "aerie").rglob("*")
                     if file.is_file() and "__pycache__" not in file.parts and "_lib" not in file.parts)
    files: dict[str, Path | str] = {file.relative_to(HERE).as_posix(): file for file in package}
    with tempfile.TemporaryDirectory() as scratch:
        libraries = _library_files(Path(scratch))
        return _build(wheel_directory, {**files, **libraries}, bool(libraries))


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """The sources where they are; the library is AERIE_DIR's or the system's."""
    return _build(wheel_directory, {"aerie.pth": f"{HERE}\n"}, False)


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    raise SystemExit("a source distribution would lack the C++ sources: build the wheel in the repository")
