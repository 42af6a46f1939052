# group: forge
# input: 1
# expect: exc:KeyboardInterrupt|ok:1|noresult
# why: a simulated SIGINT that is handled at some later bytecode, perhaps the harness's
import _thread
def f(x):
    _thread.interrupt_main()
    return 1
