# group: honest
# input: 'Hello'
# expect: ok:['Uryyb', b'\\xe9', b'\xff\xfeH\x00']
# why: codecs that are modules of their own
import codecs
def f(s): return [codecs.encode(s, 'rot13'), '\xe9'.encode('unicode_escape'), s[:1].encode('utf-16')]
