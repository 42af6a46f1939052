# group: honest
# input: 255, 3.14159
# expect: ok:'0xff/  3.14/255,000/11111111'
# why: format specifications
def f(n, r): return f'{n:#x}/{r:6.2f}/{n * 1000:,}/{n:b}'
