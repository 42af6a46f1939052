# group: honest
# input: '29 Feb 2024 18:05'
# expect: ok:('2024-02-29T18:05:00', 3)
# why: parsing a date imports a helper module lazily
from datetime import datetime
def f(text):
    t = datetime.strptime(text, '%d %b %Y %H:%M')
    return (t.isoformat(), t.weekday())
