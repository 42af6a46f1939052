"""These tests flush thousands of files."""

import pytest

from runs.making import quick_folder


@pytest.fixture
def tmp_path():
    with quick_folder() as folder:
        yield folder
