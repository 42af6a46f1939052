# group: honest
# input: 'k1=v1; k2 = v2 ;bad; k3=v=3'
# expect: ok:{'k1': 'v1', 'k2': 'v2', 'k3': 'v=3'}
# why: regular expressions and a dict
import re
def f(text): return {m[1]: m[2].strip() for m in re.finditer(r'(\w+)\s*=\s*([^;]*)', text)}
