# group: source
# input: 'a'
# expect: ok:'x-a'
# why: f is a bound method
f = 'x-{}'.format
