# group: honest
# input: '2024-02-28', 2
# expect: ok:'2024-03-01'
# why: calendar arithmetic does not need a clock
from datetime import date, timedelta
def f(day, n): return (date.fromisoformat(day) + timedelta(days=n)).isoformat()
