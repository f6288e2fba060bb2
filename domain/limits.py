"""Every bound of the product, with its unit in its name. Documentation quotes this module."""

from typing import Final

IDENTITY_CHARACTERS_MAX: Final = 250
CONFIGURATION_BYTES_MAX: Final = 256 * 1024
CAPSULE_BYTES_MAX: Final = 256 * 1024
READER_FRAME_BYTES_MAX: Final = 256 * 1024
METRIC_COLUMNS_MAX: Final = 256
GATES_MAX: Final = 64
WARNINGS_MAX: Final = 16
WARNING_CHARACTERS_MAX: Final = 200
COUNT_MAX: Final = 2**53 - 1  # larger integers do not survive JSON (RFC 8785, section 3.2.2.3)
DISTINCT_VALUES_MAX: Final = 5_000_000  # per column: an exact distinct count must fit in memory
KEEP_GENERATIONS_DEFAULT: Final = 1
KEEP_GENERATIONS_MAX: Final = 7
MAX_SOURCE_BYTES_DEFAULT: Final = 16 * 1024**3
READER_BUDGET_SECONDS: Final = 60.0
READER_REAP_SECONDS: Final = 5.0
ENGINE_WAIT_SECONDS: Final = 20.0
LEDGER_WAIT_SECONDS: Final = 10.0
STOP_SECONDS: Final = 5.0
SETTLE_SECONDS: Final = 30.0
BATCH_ROWS: Final = 65_536
TABLE_NAME_BYTES_MAX: Final = 206  # ClickHouse refuses longer file names; see domain/names.py for what must fit
DIAGNOSTIC_BYTES_MAX: Final = 4 * 1024
COLUMNS_MAX: Final = 1_000
SKIP_ROWS_MAX: Final = 1_000_000  # physical lines before a CSV's header
CONFLICTS_MAX: Final = 20  # lost append races after which an attempt gives up
EPOCHS_MAX: Final = 50
