# group: honest
# input: ['1', 'x', None]
# expect: ok:(['int', 'ValueError', 'TypeError'], 3)
# why: exceptions as control flow
def f(items):
    log, n = [], 0
    for item in items:
        try: log.append(type(int(item)).__name__)
        except (ValueError, TypeError) as e: log.append(type(e).__name__)
        finally: n += 1
    return log, n
