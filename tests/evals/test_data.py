"""Where benchmarks come from: folders, the cache, and a hub whose library hands out files that lie here."""

import gzip
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from evals.slices import BESIDE, ROWS, write_rows, write_slices
from redqueen.errors import InputError
from redqueen.evals.data import FOLDER, find
from redqueen.plugins import BENCHMARKS


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Files by repository and name; whatever else is asked for fails as a hub out of reach does."""
    import huggingface_hub

    monkeypatch.setenv("REDQUEEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(FOLDER, raising=False)
    files: dict[tuple[str, str], Path] = {}

    def there(repository, **_):
        if not any(each == repository for each, _ in files):
            raise ConnectionError("nobody answers")

    def download(repository, name, **_):
        return str(files[repository, name])

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda self, repository, **_: there(repository))
    monkeypatch.setattr(
        huggingface_hub.HfApi, "list_repo_files", lambda self, repository, **_: [n for r, n in files if r == repository]
    )
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)

    def put(benchmark, rows):
        path = tmp_path / "hub" / benchmark.name / "0000.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        files[benchmark.hub.repository, f"{benchmark.hub.config}/{benchmark.hub.split}/0000.parquet"] = path

    return put


def rows_of_aime(count):
    return [{"id": n, "problem": f"What is {n} + {n}?", "answer": str(2 * n), "url": ""} for n in range(count)]


def test_a_benchmark_comes_from_the_hub_once_and_then_from_the_cache(hub, tmp_path, monkeypatch):
    aime = BENCHMARKS.get("aime24")
    hub(aime, rows_of_aime(30))
    loaded = find(aime)
    assert [item.row["answer"] for item in loaded.items] == [str(2 * n) for n in range(30)]
    assert loaded.origin.startswith(str(tmp_path / "cache"))
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", None)
    assert find(aime).sha256 == loaded.sha256


def test_a_hub_with_other_rows_than_the_benchmark_has_is_refused_and_nothing_is_kept(hub, tmp_path):
    hub(BENCHMARKS.get("aime24"), rows_of_aime(29))
    with pytest.raises(InputError, match="29 rows on the hub, and AIME 24 has 30"):
        find(BENCHMARKS.get("aime24"))
    assert not list((tmp_path / "cache").rglob("*.gz"))


def test_a_hub_with_other_fields_is_refused(hub):
    hub(BENCHMARKS.get("aime24"), [{"text": "?"} for _ in range(30)])
    with pytest.raises(InputError, match="unexpected fields"):
        find(BENCHMARKS.get("aime24"))


def test_a_hub_out_of_reach_is_one_line_that_says_how_to_do_without(hub):
    with pytest.raises(InputError) as caught:
        find(BENCHMARKS.get("gsm8k"))
    assert "\n" not in str(caught.value) and "--data" in str(caught.value) and FOLDER in str(caught.value)


def test_benchmarks_that_share_their_rows_share_the_download(hub, tmp_path, monkeypatch):
    fields = {"code": "def f(x):\n    return x", "input": "3", "output": "3"}
    hub(BENCHMARKS.get("cruxeval_o"), [{**fields, "id": f"sample_{n}"} for n in range(800)])
    loaded = find(BENCHMARKS.get("cruxeval_o"))
    assert loaded.items[7].row == {**fields, "id": "sample_7"}
    assert loaded.origin == str(tmp_path / "cache" / "bench" / "cruxeval" / "test.jsonl.gz")
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", None)
    assert find(BENCHMARKS.get("cruxeval_i_cot")).sha256 == loaded.sha256


def test_the_answer_of_gsm8k_is_what_follows_its_mark(hub):
    row = BENCHMARKS.get("gsm8k").from_hub({"question": "?", "answer": "so 1,000 + 234.\n#### 1,234"}, 0)
    assert row["answer"] == "1234"


def test_a_folder_from_the_environment_is_used(tmp_path, monkeypatch):
    (tmp_path / "aime25").mkdir()
    rows = [{"id": f"a/{n}", "question": f"{n}?", "answer": str(n)} for n in range(5)]
    (tmp_path / "aime25" / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setenv(FOLDER, str(tmp_path))
    loaded = find(BENCHMARKS.get("aime25"))
    assert len(loaded.items) == 5 and "5 rows, and the benchmark has 30" in loaded.notes[0]
    assert loaded.first(2).items == loaded.first(2).items and len(loaded.first(2).items) == 2


@pytest.mark.parametrize(
    "text", ["{", '{"id": "a/0", "question": "?"}\n', '{"id": "a", "question": "?", "answer": "x"}']
)
def test_a_file_of_something_else_is_one_line(tmp_path, text):
    (tmp_path / "aime25").mkdir()
    (tmp_path / "aime25" / "test.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(InputError) as caught:
        find(BENCHMARKS.get("aime25"), tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", [*BESIDE])
def test_the_file_beside_a_benchmark_has_a_checksum_too(tmp_path, path):
    folder = write_slices(tmp_path)
    benchmark = BENCHMARKS.get(path.partition("/")[0].removesuffix("_dev"))
    before = find(benchmark, folder)
    assert before.beside_sha256 is not None and before.first(2).beside_sha256 == before.beside_sha256
    write_rows(folder / path, [*reversed(BESIDE[path])])
    after = find(benchmark, folder)
    assert (after.sha256, after.beside_sha256 != before.beside_sha256) == (before.sha256, True)
    assert find(BENCHMARKS.get("gsm8k"), folder).beside_sha256 is None


def test_how_contest_programs_are_graded_is_said_of_the_rows(tmp_path):
    lcb, rows = BENCHMARKS.get("livecodebench"), ROWS["livecodebench"]
    higher = "releases v1-v5: reads higher than the official score"
    for more, told in ((5, "public tests, and validated further ones of 5 of 5 tasks"), (0, "public tests only")):
        bare = [row if place < more else {**row, "extra_tests": []} for place, row in enumerate(rows)]
        write_rows(tmp_path / "livecodebench" / "test.jsonl.gz", bare)
        assert find(lcb, tmp_path).graded == f"{told}, {higher}"
    tests = json.dumps([{"input": "1", "output": "1", "testtype": "stdin"}])
    row = {"question_id": "q", "question_content": "?", "starter_code": "", "public_test_cases": tests}
    write_rows(tmp_path / "livecodebench" / "test.jsonl.gz", [lcb.from_hub({**row, "private_test_cases": tests}, 0)])
    assert find(lcb, tmp_path).graded == "public and private tests, releases v1-v5"
