"""Checkpoints: an exact way back, damage that is noticed wherever it is, and pruning that never goes too far."""

import errno
import json
import os
import subprocess

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from redqueen.engine import peft
from redqueen.errors import Fault, RunError
from redqueen.runs import checkpoints
from redqueen.runs.checkpoints import damage, load, name, newest, prune, save, steps, whole
from runs.making import BASE, Crash, all_same, content, dying, member, members, quick_folder, same

STATE = {"population": {"members": [0.1, None, "x"]}, "seed": 2**64 - 1, "tiny": 5e-324}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_saved_is_loaded_bit_for_bit(tmp_path, dtype):
    saved = {
        "t0.12": member(1, dtype=dtype),
        "t0": member(2, optimiser=False, dtype=dtype),
        "s10.1": member(3, rank=1, dtype=dtype),
    }
    path = save(tmp_path, 120, STATE, saved, **BASE)
    assert path == tmp_path / "step-000120"
    assert whole(path)
    loaded = load(path)
    assert (loaded.step, loaded.state) == (120, STATE)
    assert all_same(loaded.members, saved)
    assert loaded.members["t0"].optimiser is None


def test_without_any_optimiser_it_is_exact_too(tmp_path):
    saved = {"s0": member(1, optimiser=False)}
    assert all_same(load(save(tmp_path, 1, {}, saved, **BASE)).members, saved)


def test_tensors_that_share_memory_are_saved(tmp_path):
    one = member(1)
    moments = one.factors
    shared = checkpoints.MemberState(3, 6.5, one.factors, checkpoints.OptimiserState(4, moments, moments))
    assert same(load(save(tmp_path, 1, {}, {"s0": shared}, **BASE)).members["s0"], shared)


def test_what_was_loaded_outlives_its_files(tmp_path):
    saved = members(1)
    path = save(tmp_path, 1, {}, saved, **BASE)
    loaded = load(path)
    for file in path.rglob("*.safetensors"):
        file.write_bytes(bytes(file.stat().st_size))
    assert all_same(loaded.members, saved)


def test_equal_races_save_equal_files(tmp_path):
    for each in ("a", "b"):
        (tmp_path / each).mkdir()
    ours, theirs = (save(tmp_path / each, 1, STATE, members(1), **BASE) for each in ("a", "b"))
    assert content(ours) == content(theirs)


def test_members_are_peft_folders_and_the_sums_are_those_of_sha256sum(tmp_path):
    path = save(tmp_path, 1, {}, members(1), **BASE)
    [(module, (a_R_I, _)), _] = members(1)["t0.3"].factors.items()
    assert torch.equal(peft.load(path / "members" / "t0.3").factors[module][0], a_R_I)
    found = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=path, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert len(found.stdout.splitlines()) == 6


@pytest.mark.parametrize("id", ["../t0", "", ".", "t0/1", "t 0"])
def test_a_name_that_is_no_file_name_is_not_written(tmp_path, id):
    with pytest.raises(Fault, match="cannot be a folder"):
        save(tmp_path, 1, {}, {id: member(1)}, **BASE)
    assert steps(tmp_path) == []


def test_weights_that_would_not_load_again_are_not_saved(tmp_path):
    broken = member(1)
    next(iter(broken.factors.values()))[1][0, 0] = float("nan")
    with pytest.raises(Fault, match="t0 are not finite"):
        save(tmp_path, 1, {}, {"t0": broken}, **BASE)


# Damage


def files(path):
    return sorted(each.relative_to(path).as_posix() for each in path.rglob("*") if each.is_file())


@pytest.mark.parametrize("file", range(7))
@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "gone"])
def test_damage_is_noticed_in_every_file_and_an_older_checkpoint_is_taken(tmp_path, file, harm):
    older = save(tmp_path, 1, {"a": 1}, members(1), **BASE)
    path = save(tmp_path, 2, {"a": 2}, members(2), **BASE)
    assert newest(tmp_path) == (path, [])
    assert len(files(path)) == 7
    victim = path / files(path)[file]
    data = bytearray(victim.read_bytes())
    if harm == "gone":
        victim.unlink()
    elif harm == "flip":
        for at in (0, len(data) // 2, len(data) - 1):
            flipped = data.copy()
            flipped[at] ^= 1
            victim.write_bytes(flipped)
            assert not whole(path), at
    else:
        victim.write_bytes(data[:-1] if harm == "cut" else b"")
    found, [(passed_over, why)] = newest(tmp_path)
    assert (found, passed_over) == (older, path)
    assert victim.name in why
    assert path.exists()


def test_sums_that_were_cut_between_two_lines_are_damage(tmp_path):
    path = save(tmp_path, 1, {}, members(1), **BASE)
    lines = (path / "SHA256SUMS").read_text().splitlines(keepends=True)
    for count in range(len(lines)):
        (path / "SHA256SUMS").write_text("".join(lines[:count]))
        assert "SHA256SUMS" in (damage(path) or "")


def test_no_checkpoints_at_all_are_no_checkpoint(tmp_path):
    assert newest(tmp_path / "missing") == newest(tmp_path) == (None, [])


def test_other_names_are_no_checkpoints_and_steps_count_as_numbers(tmp_path):
    for step in (2, 1_000_000, 999_999):
        save(tmp_path, step, {}, {}, **BASE)
    for other in ("step-000007.0123abcd.partial", "step-000008.0123abcd.old", "step-9", "notes"):
        (tmp_path / other).mkdir()
    assert steps(tmp_path) == [2, 999_999, 1_000_000]
    assert newest(tmp_path)[0] == tmp_path / "step-1000000"


def test_a_checkpoint_that_another_version_wrote_is_one_line(tmp_path):
    path = save(tmp_path, 1, {}, members(1), **BASE)
    (path / "state.json").write_text(json.dumps({"step": 1}))
    with pytest.raises(RunError, match="cannot be loaded"):
        load(path)


# Crashes


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_flush_or_rename_leaves_the_old_or_the_new_one(tmp_path, after):
    for at in range(100):
        folder = tmp_path / str(at)
        folder.mkdir()
        save(folder, 1, {"a": 1}, members(1), **BASE)
        try:
            with dying(at, after=after) as calls:
                save(folder, 2, {"a": 2}, members(2), **BASE)
        except Crash:
            path, passed_over = newest(folder)
            assert path is not None
            assert passed_over == [], "a name is given to what is whole"
            found = load(path)
            assert found.state == {"a": found.step}
            assert all_same(found.members, members(found.step))
            save(folder, 3, {}, members(3), **BASE)
            prune(folder, 3, 0)
            assert [each.name for each in folder.iterdir() if each.suffix] == []
        else:
            break
    # Every file, every folder, and the names of what is new.
    assert calls.count("fsync") >= 7 + 4 + 1
    assert at == len(calls) > 12


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_while_pruning_leaves_whole_checkpoints_and_is_cleared_away(tmp_path, after):
    for at in range(20):
        folder = tmp_path / str(at)
        folder.mkdir()
        for step in range(1, 5):
            save(folder, step, {}, {}, **BASE)
        try:
            with dying(at, after=after):
                prune(folder, 1, 0)
        except Crash:
            assert all(whole(folder / name(step)) for step in steps(folder))
            assert 4 in steps(folder)
            prune(folder, 1, 0)
            assert [each.name for each in folder.iterdir()] == [name(4)]
        else:
            break
    assert at > 3


@pytest.mark.parametrize("at", [0, 5, 12])
def test_a_full_disk_is_one_line_and_leaves_nothing_behind(tmp_path, at):
    save(tmp_path, 1, {}, members(1), **BASE)
    before = content(tmp_path)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(RunError) as caught, dying(at, error=lambda: full):
        save(tmp_path, 2, {}, members(2), **BASE)
    assert caught.value.what.startswith("the checkpoint of step 2 cannot be written: ")
    assert caught.value.what.endswith("No space left on device")
    assert content(tmp_path) == before


def test_what_has_the_name_of_a_new_checkpoint_is_kept_aside(tmp_path):
    path = save(tmp_path, 1, {}, members(1), **BASE)
    (path / "state.json").write_text("damaged")
    save(tmp_path, 1, {"a": 1}, members(1), **BASE)
    assert whole(path)
    [aside] = [each for each in tmp_path.iterdir() if each != path]
    assert (aside / "state.json").read_text() == "damaged"
    prune(tmp_path, 1, 0)
    assert aside.exists()


# Pruning


@given(
    st.sets(st.integers(1, 30), max_size=8),
    st.integers(1, 4),
    st.sampled_from([0, 1, 5, 10]),
    st.sets(st.integers(1, 30)),
)
@settings(max_examples=40)
def test_the_newest_and_every_nth_are_kept(saved, last, every, known):
    with quick_folder() as folder:
        for step in saved:
            save(folder, step, {}, {}, **BASE)
        sound = prune(folder, last, every, known=known)
        kept = set(sorted(saved)[-last:]) | {step for step in saved if every and step % every == 0}
        assert set(steps(folder)) == kept
        assert sound <= kept
        assert set(sorted(saved)[-last:]) <= sound


def test_damaged_checkpoints_do_not_count_and_are_kept(tmp_path):
    for step in range(1, 6):
        save(tmp_path, step, {}, {}, **BASE)
    for step in (1, 4, 5):
        (tmp_path / name(step) / "state.json").write_text("")
    prune(tmp_path, 1, 0)
    assert steps(tmp_path) == [1, 3, 4, 5], "3 is the newest whole one"


def test_known_checkpoints_are_not_read_again(tmp_path, monkeypatch):
    for step in (1, 2, 3):
        save(tmp_path, step, {}, {}, **BASE)
    monkeypatch.setattr(checkpoints, "_sum", lambda path: pytest.fail(f"{path} is read"))
    assert prune(tmp_path, 2, 0, known={1, 2, 3}) == {2, 3}


def test_a_run_cannot_be_left_without_a_checkpoint(tmp_path):
    with pytest.raises(Fault):
        prune(tmp_path, 0, 1)
