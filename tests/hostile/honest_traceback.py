# group: honest
# input: 0
# expect: ok:['ZeroDivisionError: division by zero', 'ZeroDivisionError']
# why: formats an exception without a file to read the source from
import sys, traceback
def f(x):
    try: 1 / x
    except ZeroDivisionError as e: return [traceback.format_exc().splitlines()[-1], type(sys.exc_info()[1]).__name__]
