"""Tries an installed xsift: imports, every engine, the version, the marker for type checkers."""

import importlib.metadata
import importlib.resources

import xsift

subscriptions = xsift.Subscriptions()
subscriptions.add("alice", "//item[@price > 10]")
subscriptions.add("bob", "//item[last()]")
matcher = subscriptions.matcher()
assert matcher.match(b"<list><item price='12'/></list>") == ["alice", "bob"]
for engine in xsift.list_engines():
    assert subscriptions.matcher(engine=engine.name).match(b"<list><item price='12'/></list>") == ["alice", "bob"], (
        engine
    )
assert importlib.metadata.version("xsift") == xsift.__version__
assert (importlib.resources.files("xsift") / "py.typed").is_file()
print("    matches as it should, with every engine")
