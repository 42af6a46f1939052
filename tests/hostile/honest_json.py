# group: honest
# input: '{"b": [1, 2.5, null], "a": "\\u00e9"}'
# expect: ok:('{"a": "\\u00e9", "b": [1, 2.5, null]}', 2)
# why: json there and back
import json
def f(text):
    data = json.loads(text)
    return (json.dumps(data, sort_keys=True), len(data))
