#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The installed tree, moved elsewhere: everything in its place, programs that start, and a program outside the tree that finds
abl::models. Installs without a PATH and without a network; LibTorch's libraries stay out (400 MB), so the trainer is not started."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

BUILD = pathlib.Path(os.environ["ABLATE_BUILD"])
SOURCE = pathlib.Path(os.environ["ABLATE_SOURCE"])
CMAKE = os.environ["ABLATE_CMAKE"]
TORCH = os.environ.get("ABLATE_TORCH_FOLDER", "")
PARAMETERS = 3_053_224  # of timm's xcit_nano_12_p16_224


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def install(prefix):
    for component in ("programs", "documentation", "development"):
        # nothing of the caller's environment; in a network namespace of its own where that is allowed
        words = [CMAKE, "--install", BUILD, "--prefix", prefix, "--component", component]
        alone = ["/usr/bin/unshare", "-n", *words]
        isolated = subprocess.run(["/usr/bin/unshare", "-n", "/bin/true"], capture_output=True).returncode == 0
        run(*(alone if isolated else words), env={"PATH": "/nonexistent", "HOME": "/nonexistent"})


def check_tree(prefix):
    expected = ["bin/ablate", "bin/ablate-scheduler", "bin/ablate-worker", "share/doc/ablate/README.md", "share/doc/ablate/LICENSE",
                "share/doc/ablate/NOTICE", "share/doc/ablate/docs/sweep-file.md", "share/ablate/sweeps/demo/projection-sharing.yaml",
                "share/ablate/sweep.schema.json", "share/ablate/python/pyproject.toml", "share/ablate/python/build_backend.py", "share/ablate/python/ablate/__init__.py",
                "share/ablate/scales.schema.json",
                "share/bash-completion/completions/ablate", "share/zsh/site-functions/_ablate",
                "share/fish/vendor_completions.d/ablate.fish", "share/man/man1/ablate.1", "share/man/man1/ablate-scheduler.1",
                "share/man/man1/ablate-worker.1"]
    expected += [f"share/doc/ablate/licences/{name}" for name in ("libfmt-dev", "nlohmann-json3-dev", "preact", "uplot")]
    if TORCH:
        expected += ["share/doc/ablate/licences/pytorch/LICENSE", "bin/ablate-trainer", "share/man/man1/ablate-trainer.1", "include/ablate/models/backbones/model_options.h",
                     "lib/cmake/ablate/ablateConfig.cmake"]
    missing = [name for name in expected if not (prefix / name).is_file() or not (prefix / name).stat().st_size]
    if missing:
        raise SystemExit(f"missing from the installed tree: {', '.join(missing)}")
    # no file that people or CMake read may name the folder that the tree was built in
    for file in prefix.rglob("*"):
        if file.suffix in (".cmake", ".1", ".fish", ".h") and str(SOURCE) in file.read_text():
            raise SystemExit(f"{file} names the source folder {SOURCE}")
    run("bash", "-n", prefix / "share/bash-completion/completions/ablate")
    page = (prefix / "share/man/man1/ablate.1").read_text()
    for heading in (r"^\.SH NAME$", r"^\.SS submit$", r"^\.SS table$", r"^\\fB\\-\\-priority\\fR"):
        if not re.search(heading, page, re.M):
            raise SystemExit(f"share/man/man1/ablate.1 has no line {heading}")
    if os.path.expanduser("~/") in page:
        raise SystemExit("share/man/man1/ablate.1 names the home folder of who installed it")


def check_programs(prefix):
    for program in ("ablate", "ablate-scheduler", "ablate-worker"):
        print(run(prefix / "bin" / program, "--version").strip())
    run(prefix / "bin/ablate", "validate", prefix / "share/ablate/sweeps/demo/projection-sharing.yaml", cwd="/")


def check_packages(prefix):
    """README names the Debian packages whose libraries the programs load."""
    if not shutil.which("dpkg-query"):
        return
    text = (prefix / "share/doc/ablate/README.md").read_text()
    named = set(re.findall(r"lib[a-z0-9+.-]+[a-z0-9+]", text[text.index("the programs need these packages"):].split("\n\n")[0]))
    needed, folder = set(), run("gcc", "-print-multiarch").strip()  # 32-bit libraries of the same names may be there too
    for program in (prefix / "bin").iterdir():
        dynamic = run("readelf", "-d", program)
        for library in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
            if library.startswith(("libtorch", "libc10", "libgomp", "libtcmalloc")):
                continue  # in the tree, component `libraries`
            owner = subprocess.run(["dpkg-query", "-S", f"*/{folder}/{library}"], capture_output=True, text=True).stdout
            needed |= {line.split(":")[0] for line in owner.splitlines()}
    needed = {package for package in needed if not package.endswith("-dev")} - {"libc6", "libstdc++6", "libgcc-s1"}
    if needed != named:
        raise SystemExit(f"README.md, 'Installing': packages not named: {sorted(needed - named)}; named and not needed: {sorted(named - needed)}")


def check_package(prefix, folder):
    build = folder / "outside"
    environment = {**os.environ, "CMAKE_PREFIX_PATH": f"{prefix}:{TORCH}"}
    run(CMAKE, "-S", prefix / "share/doc/ablate/docs/examples/outside_program", "-B", build, "-DCMAKE_BUILD_TYPE=Release", env=environment)
    run(CMAKE, "--build", build, env=environment)
    answer = run(build / "outside_program").strip()
    print(answer)
    if answer != f"1000 logits, {PARAMETERS} parameters":
        raise SystemExit(f"outside_program: expected 1000 logits, {PARAMETERS} parameters")
    build = folder / "plugin"
    run(CMAKE, "-S", prefix / "share/doc/ablate/docs/examples/plugin", "-B", build, "-DCMAKE_BUILD_TYPE=Release", env=environment)
    run(CMAKE, "--build", build, env=environment)
    answer = run(prefix / "bin/ablate-trainer", "plugin", build / "linear_attention.so", env={**os.environ, "LD_LIBRARY_PATH": f"{TORCH}/lib"})
    print(answer.strip())
    if "name: linear_attention" not in answer or "feature_map: elu" not in answer:
        raise SystemExit("ablate-trainer plugin: expected its name and its keys")


def check_same_digest(folder):
    """The same plugin, against an ablate in another place, in another folder, with debugging information: a plugin's digest is part of
    what a trial is, and is to be the same on every machine."""
    digests = set()
    for place in ("one", "another/deeper"):
        home = folder / place
        prefix, source = home / "opt", home / "src"
        run(CMAKE, "--install", BUILD, "--prefix", prefix, "--component", "development")
        source.mkdir()
        text = (SOURCE / "docs/examples/plugin/linear_attention.cc").read_text()
        (source / "linear_attention.cc").write_text(text + "\nvoid check(int n) { TORCH_CHECK(n > 0, n); }\n")  # says its file's name
        (source / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX)\nfind_package(ablate REQUIRED)\n"
                                               "ablate_add_plugin(linear_attention linear_attention.cc)\n")
        run(CMAKE, "-S", source, "-B", home / "made", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
            env={**os.environ, "CMAKE_PREFIX_PATH": f"{prefix}:{TORCH}", "CCACHE_DISABLE": "1"})
        run(CMAKE, "--build", home / "made", env={**os.environ, "CCACHE_DISABLE": "1"})
        made = (home / "made/linear_attention.so").read_bytes()
        if str(folder).encode() in made:
            raise SystemExit(f"a plugin that was built in {home} names that folder")
        digests.add(hashlib.sha256(made).hexdigest())
    if len(digests) != 1:
        raise SystemExit("the same plugin has another digest where it, or ablate, lies elsewhere")


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ablate-installed-"))
    try:
        install(folder / "first")
        prefix = folder / "moved"
        (folder / "first").rename(prefix)
        check_tree(prefix)
        check_programs(prefix)
        check_packages(prefix)
        if TORCH:
            check_package(prefix, folder)
            check_same_digest(folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
