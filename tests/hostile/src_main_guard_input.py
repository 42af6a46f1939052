# group: source
# input: 4
# expect: ok:8
# why: a script part behind the guard that reads input and prints
def f(x): return x * 2
if __name__ == '__main__':
    print(f(int(input())))
