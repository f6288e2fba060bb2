"""What a person may decide about recorded operations and targets: each decision is checked, shown, and an event.

One file a decision: hold, reopen, release a guard, retire, roll back, sweep. Nothing here knows how it is printed.
"""
