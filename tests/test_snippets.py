"""The Python of the manual runs as it stands there, on the base that needs no download."""

import re
import textwrap
from pathlib import Path

import redqueen

USAGE = Path(redqueen.__file__).parents[2] / "docs" / "usage.md"


def test_the_python_of_the_manual_runs(tmp_path, capsys):
    verifier, engine, adapters = re.findall(r"^```python\n(.*?)^```", USAGE.read_text(), re.DOTALL | re.MULTILINE)
    exec(verifier, {})
    assert capsys.readouterr().out == "['ok:42', 'exc:TypeError']\n"
    names: dict[str, object] = {"folder": tmp_path / "ada"}
    exec(engine.replace("smollm2-135m", "pico"), names)
    assert "'ada': " in capsys.readouterr().out
    # The example has closed its engine by then: the lines about adapters get one of their own.
    another = "with LocalEngine(base, members=['ada', 'eve'], rank=8) as engine:\n"
    exec(another + textwrap.indent(adapters, "    "), names)
    assert (tmp_path / "ada" / "adapter_model.safetensors").is_file()
