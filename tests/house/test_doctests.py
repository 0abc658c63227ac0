"""Every example in a docstring is true."""

import doctest
import importlib
import pkgutil

import pytest

import app
import evidence

MODULES = sorted(
    module.name
    for package in (app, evidence)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("__main__")
)


def failures(name: str) -> int:
    """The examples of a module that are not true.

    A docstring without examples isn't run: each run looks at every source file again.
    """
    runner = doctest.DocTestRunner()
    for docstring in doctest.DocTestFinder().find(importlib.import_module(name)):
        if docstring.examples:
            runner.run(docstring)
    return runner.failures


def test_examples_of_the_module_are_true(subtests: pytest.Subtests) -> None:
    for name in MODULES:
        with subtests.test(name=name):
            assert failures(name) == 0
