"""What stands beside the package: the container's recipe, and whom to cite."""

import json
import re
import tomllib
from pathlib import Path

import redqueen

ROOT = Path(redqueen.__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_container_copies_what_the_package_is_built_of_and_runs_without_rights():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = {word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]}
    assert all((ROOT / path).exists() for path in copied)
    assert {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"], "src"} <= copied
    [extras] = [line.partition("=")[2].split(",") for line in lines if line.startswith("ARG EXTRAS=")]
    assert set(extras) <= PROJECT["optional-dependencies"].keys()
    assert [line for line in lines if line.startswith("USER ")] == ["USER redqueen"]
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert not copied & set(ignored)


def test_what_is_cited_is_the_same_in_both_places():
    citation, readme = (ROOT / "CITATION.cff").read_text(), (ROOT / "README.md").read_text()
    assert re.search(rf"^version: {re.escape(redqueen.__version__)}$", citation, re.M)
    assert re.search(rf"^license: {PROJECT['license']}$", citation, re.M)
    titles = [json.loads(text) for text in re.findall(r'^ +- type: article\n +title: (".*")$', citation, re.M)]
    assert [title.partition(":")[0] for title in titles] == ["PopuLoRA", "Absolute Zero"]
    plain = " ".join(readme.split())
    assert all(f"*{title}.*" in plain for title in titles)
    cited = re.findall(r"arXiv:(\d{4}\.\d{5})", citation)
    assert len(cited) == 2 and all(f"https://arxiv.org/abs/{paper}" in readme for paper in cited)
    families = re.findall(r"family-names: (.*)$", citation, re.M)
    assert len(families) == 17 and all(f". {name}" in plain for name in families)


def test_the_readme_names_the_extras_that_there_are():
    [named] = re.findall(r"The extras are (.*?); without", (ROOT / "README.md").read_text(), re.S)
    assert set(re.findall(r"`(\w+)`", named)) == PROJECT["optional-dependencies"].keys() - {"dev"}
