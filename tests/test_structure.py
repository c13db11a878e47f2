"""One place for each thing, in the package and its tools."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
TREES = [
    ast.parse(path.read_text())
    for folder in ("cmaxslam_fbp", "tools", "apps")
    for path in (ROOT / folder).rglob("*.py")
]


def test_no_two_classes_share_a_name():
    names = Counter(node.name for tree in TREES for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_constants_of_several_files_are_defined_once():
    names = Counter(
        target.id
        for tree in TREES
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
        and target.id in ("NS_PER_S", "FloatArray", "SingleArray", "IntArray", "Picture")
    )
    assert set(names.values()) == {1}
