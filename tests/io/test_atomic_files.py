import os

import pytest

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.io.atomic_files import in_the_making, write_file


def test_a_file_is_written_and_nothing_is_left_beside_it(tmp_path):
    assert write_file(tmp_path / "a.txt", "grün\n").read_bytes() == "grün\n".encode()
    write_file(tmp_path / "a.txt", b"\x00")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.txt", b"\x00")]


def test_until_the_end_only_the_temporary_name_is_there(tmp_path):
    with in_the_making(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
        assert os.listdir(tmp_path) == [f".a.txt.{os.getpid()}.part"]
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("is_folder", [False, True])
def test_after_an_error_nothing_is_left_and_the_old_file_stays(tmp_path, is_folder):
    (tmp_path / "a").write_text("old")

    def fail():
        with in_the_making(tmp_path / "a") as temporary:
            if is_folder:
                temporary.mkdir()
                (temporary / "inside").write_text("half")
            else:
                temporary.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "old")]


def test_a_folder_is_moved_whole(tmp_path):
    with in_the_making(tmp_path / "new" / "a", make_folder=True) as temporary:
        temporary.mkdir()
        (temporary / "inside").write_text("whole")
    assert (tmp_path / "new" / "a" / "inside").read_text() == "whole"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing/a.txt", "No such file or directory"), ("file/a.txt", "Not a directory"), ("folder", "Is a directory")],
)
def test_a_place_that_cannot_be_written_is_one_line_with_the_reason(tmp_path, name, reason):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError) as caught:
        write_file(tmp_path / name, "text")
    assert str(caught.value).startswith(f"cannot write {tmp_path / name}: {reason}; choose a folder that")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_a_missing_folder_is_made_where_that_is_wanted(tmp_path):
    write_file(tmp_path / "new" / "newer" / "a.txt", "text", make_folder=True)
    assert (tmp_path / "new" / "newer" / "a.txt").read_text() == "text"
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"cannot write .*file"):
        write_file(tmp_path / "file" / "a.txt", "text", make_folder=True)
