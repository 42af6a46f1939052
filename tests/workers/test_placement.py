from hypothesis import given
from hypothesis import strategies as st

from redqueen.cluster.placement import grouped, homes, shard_of, shard_of_prompt

COUNTS = st.integers(1, 12)


def sizes(teachers: int, students: int, shards: int) -> list[int]:
    members = [*(f"t{number}" for number in range(teachers)), *(f"s{number}" for number in range(students))]
    return [sum(shard_of(member, shards) == shard for member in members) for shard in range(shards)]


@given(COUNTS, COUNTS, COUNTS)
def test_shards_are_of_one_size_up_to_two_members(teachers: int, students: int, shards: int):
    found = sizes(teachers, students, shards)
    assert max(found) - min(found) <= 2


def test_teachers_come_from_the_front_and_students_from_the_back():
    assert sizes(1, 1, 2) == [1, 1]
    assert sizes(3, 3, 2) == [3, 3]
    assert [shard_of(member, 4) for member in ("t0", "t5", "s0", "s5")] == [0, 1, 3, 2]


def test_a_child_is_where_its_predecessor_was_and_in_every_namespace():
    for shards in range(1, 6):
        assert len({shard_of(name, shards) for name in ("s3", "s3.1", "s3.27", "race0/s3")}) == 1


@given(st.text(), COUNTS)
def test_every_name_has_a_shard(name: str, shards: int):
    assert 0 <= shard_of(name, shards) < shards


def test_prompts_of_the_bare_base_go_to_all_shards():
    assert {shard_of_prompt((number, 1), 3) for number in range(50)} == {0, 1, 2}


@given(COUNTS, st.lists(st.integers(0, 5), unique=True), st.lists(st.integers(0, 5), unique=True))
def test_every_shard_has_a_home_and_few_move(shards: int, before: list[int], workers: list[int]):
    old = homes([None] * shards, before)
    new = homes(old, workers)
    if not workers:
        assert new == [None] * shards
        return
    assert set(new) <= set(workers)
    counts = [new.count(worker) for worker in workers]
    assert max(counts) - min(counts) <= 1 or max(counts) <= -(-shards // len(workers))
    most = -(-shards // len(workers))
    for worker in workers:
        stayed = sum(a == b == worker for a, b in zip(old, new, strict=True))
        assert stayed == min(old.count(worker), most)


def test_only_the_shards_of_a_lost_worker_move():
    assert homes(["a", "b", "c", "a"], ["a", "c"]) == ["a", "c", "c", "a"]


def test_one_that_comes_gets_its_part():
    assert homes(["a", "a", "a", "a"], ["a", "b"]) == ["a", "a", "b", "b"]


def test_groups_keep_their_order():
    assert grouped([(1, "a"), (0, "b"), (1, "c")]) == {1: ["a", "c"], 0: ["b"]}
