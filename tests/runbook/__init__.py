"""The runbook, row by row: the situation is created, the page's commands are typed, and it ends where the page says."""
