# group: source
# input: 
# expect: ok:'none'
# why: an empty argument text is a call without arguments
def f(): return 'none'
