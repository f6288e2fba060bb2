"""What a load imports that it has no use for: nothing."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cli.sandbox import ROOT, Sandbox, rows_of


def test_a_load_leaves_pandas_alone_where_it_is_installed(sandbox: Sandbox, tmp_path: Path) -> None:
    seen, package = tmp_path / "imported", tmp_path / "packages" / "pandas"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"open({str(seen)!r}, 'a').close()\nraise ImportError('a stand-in')\n")
    sandbox.environment = {"PYTHONPATH": os.pathsep.join((str(package.parent), str(ROOT)))}
    sandbox.write_rows(rows_of(1))
    sandbox.write_manifest()
    done = sandbox.run()

    assert done.code == 0, done.err
    assert not seen.exists()
