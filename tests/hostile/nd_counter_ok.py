# group: nondet
# input: 'mississippi'
# expect: ok:[('i', 4), ('s', 4), ('p', 2), ('m', 1)]
# why: ties keep the order of arrival, which no seed changes
from collections import Counter
def f(s): return Counter(s).most_common()
