"""``dpone ops resume``: the same as repeating the command, without its manifest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from .output import format_option, ledger_option

if TYPE_CHECKING:
    from ..runtime.compose import Composer
    from ..runtime.execution import Execution


@click.command("resume", short_help="Continue an operation from the ledger alone.")
@click.argument("operation")
@ledger_option
@format_option
@click.pass_obj
def resume(composer: Composer | None, operation: str, ledger: str | None, output: str) -> int:
    """Continue OPERATION where it stands, as the same command would: what is recorded says everything.

    The manifest is needed only while a file must be read whose path is relative to it.
    """
    from .executing import execute

    def prepare() -> Execution:
        from ..runtime.compose import compose
        from ..runtime.lookup import one_operation
        from ..runtime.recorded import resumption
        from ..runtime.settings import settings_from
        from .opening import opened_ledger
        from .progress import reporter

        with opened_ledger(os.environ, ledger) as store:
            found = one_operation(store, operation)
        settings = settings_from(os.environ, ledger)
        return resumption(found, settings, composer or compose, reporter(output))

    return execute(prepare, output)
