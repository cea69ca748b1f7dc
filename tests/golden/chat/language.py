"""Small templates, for make_golden.py: the language, piece by piece. Those that jinja2 refuses must be refused, too."""

VARIABLES = {
    "n": 7, "f": 2.5, "t": True, "no": None, "s": "Hello, W\u00f6rld \U0001F600!", "e": "", "ws": " \t a b \n", "big": 123456789012,
    "l": [3, 1, 2], "nested": [[1, [2, "x"]], {"a": {"b": [10, 20]}}], "names": ["bob", "Ada", "\u00c4gir", "ada"],
    "d": {"b": 1, "a": "x", "items": 5, "C": [1, "q'", 'd"']}, "empty": {}, "nothing": [],
    "people": [{"name": "Ann", "age": 31, "ok": True}, {"name": "bob", "age": 5, "ok": False}, {"name": "Cy", "age": 31, "ok": True, "x": {"y": 1}}],
    "floats": [1.0, -0.0, 1e16, 1e15, 1e-4, 1e-5, 0.1, 123456.789, 1e300, 5e-324, 2.0 ** 53],
    "lines": "one\ntwo\r\n\n three\u2028four\n", "quotes": "it's \"q\" \\ \t\x01\x7f\u00a0\u200b\U0001F600\U000E0001",
    "unicode": "stra\u00dfe \u01c6 \u0149 \u039f\u0394\u039f\u03a3 \u03a3 \u0130I \ufb01n \u10d0 \u13a0\uab70 d\u00e9j\u00e0 vu x'y",
}

EXPRESSIONS = """
n + 1 | n - 10 | n * 3 | n / 2 | n // 2 | -n // 2 | n % 4 | -n % 4 | n % -4 | 2 ** 10 | 2 ** -1 | -2 ** 2 | 2 ** 3 ** 2 | n / 7 | 7.0 // 2 | -7.5 % 2
7 // -2 | 7.5 // -2 | -0.0 | 0.0 * -1 | 1e3 | 1_000 | 1.5e-7 | 10 / 4 | 1 / 3 | 1 / 0 | 1 // 0 | 1 % 0 | 1.0 / 0 | 9223372036854775807 | +n | - -n | not n | not not n
t + t | t + 1.5 | t * 'ab' | 'ab' * 3 | 3 * 'ab' | 'ab' * -1 | l * 2 | l + [4] | (1, 2) + (3,) | 'a' + 1 | 1 + 'a' | no + 1 | missing + 1 | l + (1,)
n ~ s | n ~ no ~ t ~ missing | 1 + 2 ~ 3 | 2 * 3 ~ 4 | 'a' ~ 1 + 2 | f ~ l | s + e
1 < 2 | 1 < 2 < 3 | 1 < 3 < 2 | 3 > 2 >= 2 | 1 == 1.0 | t == 1 | 'a' < 'b' | 'a' < 1 | [1, 2] < [1, 3] | no == missing | missing == other | no < 1 | 1 != 2 | l == [3, 1, 2] | l == (3, 1, 2)
d == {'a': 'x', 'b': 1, 'items': 5, 'C': [1, "q'", 'd"']} | 'a' in 'abc' | 'a' not in 'abc' | 3 in l | 4 in l | 'a' in d | 'z' in d | 1 in missing | 1 in no | 1 in 'abc' | not 3 in l | [1] in [[1]] | (1,) in d | [1] in d
n and s | e or 'x' | e and 'x' | n or 1 / 0 | no or missing or 'z' | not e and t | 1 if t else 2 | 1 if e else 2 | 1 if e | (1 if e) is undefined | 1 if t else 1 / 0 | 'a' if e else 'b' if no else 'c' | ('a' if t else 'b') ~ 'c'
l[0] | l[-1] | l[5] | l[-4] | l[0:2] | l[::-1] | l[1:] | l[:-1] | l[:] | l[5:1] | l[::2] | l[-1:0:-1] | l[::0] | l['a'] | l[no] | l[missing] | l[1.0] | l[t] | s[0] | s[-2] | s[7:12] | s[::-1] | s[99] | s[5:2] | s[-3:] | s[::3] | s[7] | s[-100:100]
d['a'] | d.a | d['zz'] | d.zz | d.zz.y | d['zz']['y'] | d.items | d['items'] | d.C[1] | nested[0][1][1] | nested.1.a.b.0 | nested[1].a.b[-1] | people[2].x.y | people[0].x.y | n.real2 | s.zz | no.x | missing.x | missing['x'] | d[[1]]
[] | [1, 'a', 2.0, none, true] | (1,) | () | (1, 2) | {} | {'a': 1, 'b': [1, {'c': no}]} | {1: 2, 'x': (1, 2)} | {'a': 1, 'a': 2} | [1, 2,] | {'a': 1,} | (1) | [[]] | {[]: 1} | [missing] | d | l | names | quotes | [quotes] | ["it's"] | ['"'] | ["'\\""] | ['\\n\\t\\\\'] | floats | [1e16, 123456789.0]
'a\\nb' | 'a\\x41\\u00e9\\U0001F600' | '\\101\\0' | 'a\\qb' | "it's" | 'a' 'b' "c" | '\\''
s | length | l | length | d | length | e | length | missing | length | n | length | no | length | (l | map('string')) | length | people | count | s | upper | s | lower | names | join | names | join(', ') | l | join('-') | 'abc' | join(',') | d | join(',') | people | join('/', attribute='name') | missing | join | [1, no, missing] | join(' ')
ws | trim | ws | trim | length | 'xxaxx' | trim('x') | n | trim | no | trim | 'hello wORLD-foo (bar)' | title | 'hELLO World' | capitalize | unicode | upper | unicode | lower | unicode | title | unicode | capitalize | unicode.title() | unicode.upper() | unicode.lower() | unicode.capitalize()
names | sort | names | sort(reverse=true) | names | sort(case_sensitive=true) | people | sort(attribute='age') | map(attribute='name') | list | people | sort(attribute='age', reverse=true) | map(attribute='name') | join | [1, 'a'] | sort | l | sort | l | reverse | list | s | reverse | d | reverse | list | l | first | l | last | nothing | first | s | first | s | last | d | first | d | last | names | unique | list | [1, 1.0, true, 2] | unique | list | l | min | l | max | names | min | names | max | nothing | max | l | sum | floats | sum | people | sum(attribute='age') | nothing | sum | nothing | sum(start=5) | people | max(attribute='age')
missing | default('x') | e | default('x') | e | default('x', true) | no | default('x') | no | d('x', boolean=true) | missing | default | n | default(1) | missing.x | default('x') | d.zz | default('x') | (d.zz).y | default('x')
n | string | no | string | l | string | s | list | d | list | n | list | missing | list | '42' | int | ' -4_2 ' | int | '4.7' | int | 'x' | int | 'x' | int(9) | 4.9 | int | -4.9 | int | no | int | t | int | l | int | '1e3' | int | '' | int | missing | int | '4.5' | float | 'x' | float | n | float | '1e400' | float | 'nan' | float | no | float(1.5) | '_1' | int
-5 | abs | (-5) | abs | -2.5 | abs | 's' | abs | 2.5 | round | 3.5 | round | -2.5 | round | 2.675 | round(2) | 42.55 | round(1, 'floor') | 42.51 | round(1, 'ceil') | 7 | round | 7 | round(1) | 1234.5 | round(0, 'common') | 42.4 | round(method='up')
l | map('string') | list | names | map('upper') | list | people | map(attribute='name') | list | people | map(attribute='x.y') | list | people | map(attribute='x.y', default=0) | list | people | map(attribute='zz') | list | l | map('abs') | join | names | map('replace', 'a', 'b') | list | names | map('zz') | list | l | map | list
people | selectattr('ok') | map(attribute='name') | list | people | rejectattr('ok') | map(attribute='name') | list | people | selectattr('age', 'equalto', 31) | map(attribute='name') | join(',') | people | selectattr('age', 'lt', 10) | list | length | people | selectattr('x', 'defined') | list | length | people | rejectattr('x.y', 'defined') | list | length | l | select('odd') | list | l | reject('odd') | list | [0, 1, '', 'a', no] | select | list | l | select('in', [1, 2]) | list | people | selectattr('zz.y') | list | no | selectattr('x') | list | no | map('upper') | list | names | select('string') | list | length | l | select('zz') | list
l | tojson | d | tojson | s | tojson | quotes | tojson | no | tojson | t | tojson | floats | tojson | nested | tojson | missing | tojson | [missing] | tojson | (1, 2) | tojson | empty | tojson | nothing | tojson | d | tojson(indent=2) | nested | tojson(indent=1) | empty | tojson(indent=4) | d | tojson(sort_keys=true) | d | tojson(separators=(',', ':')) | d | tojson(separators=[' , ', ' : '], indent=0) | s | tojson(ensure_ascii=true) | quotes | tojson(true) | {1: 2, 2.5: 1, none: 0, true: 9} | tojson | d | tojson(indent='--') | range(3) | tojson | range(3) | list | tojson | 'a<b>&' | tojson
d | items | list | empty | items | list | missing | items | list | l | items | list | d | dictsort | d | dictsort(true) | d | dictsort(reverse=true) | people[0] | dictsort(by='value') | {'b': 2, 'a': 3} | dictsort(by='value') | {'b': 2, 'a': 3} | dictsort(false, 'value', true) | l | dictsort
lines | indent | lines | indent(2) | lines | indent(2, true) | lines | indent(2, blank=true) | lines | indent('> ', first=true) | e | indent | n | indent | 'a' | indent(3, true) | 'a\\n' | indent(1)
'%s-%s' | format(1, 'a') | '%d%%' | format(5) | '%s' % 3 | '%s %s' % (1, l) | '%s %s' % 1 | 'x' % 1 | 'x' % () | '%s' % [1] | 'x' % [1] | '{} {}'.format(1, 'a') | '{1} {0}'.format(1, 'a') | '{a}{{}}'.format(a=n) | '{}'.format() | '{'.format()
[1, 2, 3, 4, 5] | batch(2) | list | [1, 2, 3] | batch(2, 'x') | list | s | replace('l', 'L') | s | replace('l', 'L', 1) | 'aaa' | replace('a', 'b', count=2) | 'ab' | replace('', '-') | n | replace(7, 8) | 'aaa' | replace('aa', 'a') | s | safe | s | safe | length | 'a<b' | safe | '<' + ('a<b' | safe) | ('a<b' | safe) + '>' | '<' ~ ('a<b' | safe)
s.upper() | s.lower() | ws.strip() | ws.lstrip() | ws.rstrip() | 'xxaxx'.strip('x') | 'abcba'.lstrip('ab') | 'abcba'.rstrip('ab') | ' a '.strip(none) | 'a b  c'.split() | 'a,b,,c'.split(',') | 'a,b,c'.split(',', 1) | 'a,b,c'.rsplit(',', 1) | ' a  b c '.split(none, 1) | ' a  b c '.rsplit(none, 1) | 'abc'.split('') | ''.split() | ''.split(',') | 'a b'.split(maxsplit=0) | lines.splitlines() | lines.splitlines(true) | ''.splitlines() | 'a<x>b<x>c'.split('<x>')[-1]
s.startswith('He') | s.startswith(('x', 'H')) | s.endswith('!') | s.endswith(['!']) | s.startswith('llo', 2) | 'abc'.endswith('b', 0, 2) | s.startswith() | s.startswith(1) | s.find('l') | s.find('zz') | s.find('\\U0001F600') | s.rfind('l') | s.find('l', 4) | s.find('', 99) | s.index('W') | s.index('zz') | s.count('l') | 'aaa'.count('aa') | 'abc'.count('') | s.replace('l', '') | s.replace('l', 'L', 1) | s.replace('l') | 'ab'.replace('', '-') | 'ab'.replace('', '-', 2) | 'a-b-c'.partition('-') | 'a-b-c'.rpartition('-') | 'abc'.partition('x') | 'abc'.rpartition('x') | 'abc'.removeprefix('a') | 'abc'.removesuffix('c') | 'abc'.removeprefix('x') | ','.join(names) | ','.join([1]) | ','.join('abc') | ''.join(d) | ' '.isspace() | ''.isspace() | '12'.isdigit() | '1a'.isdigit() | s.zz() | s.strip(1) | 'abc'.title() | "they're bill's".title() | 'x'.capitalize()
d.get('a') | d.get('zz') | d.get('zz', 5) | d.get() | d.get([1]) | d.keys() | list | d.values() | list | d.items() | list | d.keys() | length | 'a' in d.keys() | 1 in d.values() | empty.items() | list | d.pop('a') | d.update({}) | l.append(1) | l.index(1) | l.index(9) | l.count(3) | (1, 2, 1).count(1) | d.copy() | l.copy() | d.pop is defined | l.append is defined | d.get is defined | l.sort() | d.setdefault('x', 1)
range(5) | list | range(2, 5) | list | range(5, 0, -2) | list | range(0) | list | range(3)[1] | range(3)[-1] | range(5)[1:3] | list | 3 in range(5) | range(1, 2, 0) | range() | range('a') | range(100001) | length | range(3) | length | dict(a=1, b=2) | dict({'a': 1}, b=2) | dict([('a', 1), ['b', 2]]) | dict(a=1).a | dict(1) | namespace(a=1).a | namespace(a=1).b | namespace({'x': 1}).x
strftime_now('%Y-%m-%d') | strftime_now('%d %b %Y, %A %B') | strftime_now('%H:%M:%S %I %p %j %y %a %-d %-m %% %e') | raise_exception('no') | raise_exception('two\\nlines') | raise_exception()
n is defined | missing is defined | missing is not defined | missing is undefined | no is none | n is not none | n is number | f is number | t is number | s is number | n is integer | t is integer | f is integer | f is float | n is float | t is boolean | n is boolean | t is true | 1 is true | e is false | false is false | s is string | n is string | d is mapping | l is mapping | l is iterable | s is iterable | d is iterable | n is iterable | no is iterable | missing is iterable | l is sequence | s is sequence | d is sequence | n is sequence | (l | map('string')) is sequence | (l | map('string')) is iterable | range(3) is sequence | d.items() is iterable | range is callable | s is callable | d.get is callable
7 is odd | 8 is odd | 8 is even | 's' is odd | 9 is divisibleby 3 | 9 is divisibleby(2) | 9 is divisibleby 0 | n is eq 7 | n is equalto(7) | n is ne 7 | n is lt 8 | n is gt 8 | n is ge 7 | n is le 6 | n is in [7] | n is in(l) | n is not in l | no is sameas none | t is sameas true | 1 is sameas true | l is sameas l | l is sameas [3, 1, 2] | n is zz | n is defined and s is string | n is defined or 1 / 0 | not n is defined | n is string is string | 'x' is in 'xyz' | d.a is string and d.b is not string
missing | missing.x is defined | missing.x.y is defined | missing | upper | missing | length | missing | list | missing | first | missing | tojson | missing | string | missing | replace('a', 'b') | missing | trim | missing | items | list | missing | dictsort | missing | reverse | list | missing | sort | missing | sum | missing | abs | missing | round | missing() | missing.x() | missing | join(',') | missing | indent | -missing | missing | selectattr('x') | list | missing[0] | missing or 'z' | not missing | missing == missing | missing != 1 | missing < 1 | missing ~ 'x' | missing in l | missing * 2 | 'a' in missing
l | zz | n | zz(1) | s.join | n() | 'a'() | l.0 | n n | 1 + | (1 | [1 | {1 | {1: | ) | * 2 | a b | l[ | l[1:2:3:4] | s.1a | f( | f(a=1, 2) | 'abc | 1 if | not | | x | is | n is | n | | @ | $ | a ? b
range(3) | string | l | map('string') | string | d.keys() | string
""".strip()


def split(line):
    """At " | " where no filter can follow: a filter's name would be one of these."""
    filters = ("length count upper lower join trim title capitalize sort map reverse list first last unique min max sum default d string int float abs "
               "round selectattr rejectattr select reject tojson items dictsort indent format batch replace safe zz").split()
    out = []
    for part in line.split(" | "):
        name = part.split("(")[0].split(" ")[0].split(")")[0].strip()
        if out and name in filters and not (name in ("d",) and "(" not in part):
            out[-1] += " | " + part
        else:
            out.append(part)
    return out


STATEMENTS = [
    # if
    "{% if n == 7 %}a{% elif 1 / 0 %}b{% else %}c{% endif %}", "{% if e %}a{% elif no %}b{% else %}c{% endif %}", "{% if e %}a{% endif %}|",
    "{% if n > 5 and s %}yes{% endif %}", "{% if %}{% endif %}", "{% if n %}", "{% endif %}", "{% else %}", "{% if n %}{% else %}{% else %}{% endif %}",
    "{% if 1, 2 %}t{% endif %}",
    # for
    "{% for x in l %}{{ x }}{% endfor %}", "{% for x in nothing %}{{ x }}{% else %}empty{% endfor %}", "{% for x in l %}{{ x }}{% else %}empty{% endfor %}",
    "{% for x in missing %}{{ x }}{% else %}empty{% endfor %}", "{% for x in no %}{% endfor %}", "{% for x in n %}{% endfor %}",
    "{% for c in 'a\u00e9\U0001F600' %}[{{ c }}]{% endfor %}", "{% for k in d %}{{ k }},{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d | dictsort %}{{ k }}={{ v }};{% endfor %}", "{% for a, b in l %}{% endfor %}", "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for x in l if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% endfor %}", "{% for x in l if x > 9 %}a{% else %}none{% endfor %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}{{ loop.previtem is defined }}{{ loop.nextitem is undefined }} {% endfor %}",
    "{% for x in l %}{{ loop.cycle('a', 'b') }}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}", "{% for x in l %}{{ loop.zz }}{% endfor %}", "{{ loop }}",
    "{% for x in l %}{% for y in names %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}",
    "{% for x in l %}{% set outer = loop %}{% for y in names %}{{ outer.index }}{% endfor %}{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}e{% endfor %}",
    "{% for x in l %}{% for y in l %}{% if y == 2 %}{% break %}{% endif %}{{ y }}{% endfor %};{% endfor %}", "{% break %}",
    "{% for x in l %}{% with y = x %}{% if y == 1 %}{% continue %}{% endif %}{{ y }}{% endwith %}{% endfor %}",
    "{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% for x in l %}{% else %}{% break %}{% endfor %}",
    "{% for x in l %}{{ y }}{% set y = x %}{{ y }}{% endfor %}{{ y }}", "{% set y = 0 %}{% for x in l %}{% set y = y + x %}{{ y }}{% endfor %}{{ y }}",
    "{% set ns = namespace(y=0) %}{% for x in l %}{% set ns.y = ns.y + x %}{% endfor %}{{ ns.y }}", "{% for x in l %}{% endfor %}{{ x }}",
    "{% for x in l %}", "{% for in l %}{% endfor %}", "{% for x l %}{% endfor %}", "{% for x in %}{% endfor %}", "{% for 1 in l %}{% endfor %}", "{% for x in l, names %}{{ x }}{% endfor %}",
    "{% for x in (l if t else names) %}{{ x }}{% endfor %}", "{% for x in l | sort %}{{ x }}{{ ',' if not loop.last }}{% endfor %}",
    "{% for x in range(3) if x is odd %}{{ x }}{% endfor %}", "{% for x in l[::-1] %}{{ x }}{% endfor %}", "{% for a, b in d | items %}{{ a }}{% endfor %}",
    "{% for x in l %}{{ loop.index + loop.length }}{% endfor %}",
    "{% set g = l | map('string') %}{{ g | list }}{{ g | list }}{{ 1 if g else 2 }}", "{% set g = l | map('string') %}{{ g | first }}{{ g | list }}",
    "{% set g = l | select('odd') %}{{ 3 in g }}{{ g | list }}", "{% set v = d.items() %}{{ v | list | length }}{{ v | list | length }}", "{{ (l | map('string'))[0] }}", "{{ d.items()[0] }}",
    "{{ l | map('string') | last }}", "{{ l | reverse | first }}", "{{ (l | reverse) | length }}", "{{ d.items() | first }}", "{{ d.items() | last }}",
    # set
    "{% set x = 5 %}{{ x }}", "{% set x, y = 1, 2 %}{{ x }}{{ y }}", "{% set x, y = 1 %}", "{% set x, y = [1, 2, 3] %}", "{% set (x, y) = l[:2] %}{{ x }}{{ y }}", "{% set x = 1, 2 %}{{ x }}",
    "{% set x %}a{{ n }}b{% endset %}{{ x }}|{{ x | length }}", "{% set x | upper %}a{{ n }}b{% endset %}{{ x }}", "{% set x | replace('a', 'c') | trim %} a {% endset %}{{ x }}",
    "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}", "{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b }}", "{% set d.a = 1 %}", "{% set zz.a = 1 %}",
    "{% set ns = namespace() %}{% set ns._a = 1 %}{{ ns._a }}", "{% set ns = namespace(a=1) %}{% set ns.a, x = 2, 3 %}{{ ns.a }}{{ x }}", "{% set true = 1 %}", "{% set 1 = 1 %}", "{% set x %}", "{% set x == 1 %}", "{% set %}",
    "{% if t %}{% set x = 1 %}{% endif %}{{ x }}", "{% if e %}{% set n = 1 %}{% endif %}{{ n }}", "{% set n = n + 1 %}{{ n }}", "{{ n }}{% set n = 1 %}{{ n }}", "{% set x = {'a': [1, 2]} %}{{ x.a[1] }}",
    "{% set x = 'a' if e else 'b' %}{{ x }}", "{% set items = [] %}{% for x in l %}{% set items = items + [x] %}{% endfor %}{{ items }}", "{% set _ = l.append(1) %}", "{% do l.append(1) %}",
    "{% set ns = namespace(a=1) %}{{ ns }}", "{% set ns = namespace(l=[]) %}{% for x in l %}{% set ns.l = ns.l + [x * 2] %}{% endfor %}{{ ns.l }}", "{% set a = namespace() %}{% set a.a = a %}{{ a.a.a is defined }}",
    # macro, call
    "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, 3) }}|{{ m(1, c=5) }}|{{ m(b=1, a=2) }}|{{ m() }}", "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}{{ m(no) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=1) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, a=1) }}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}",
    "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(5) }}", "{% macro m() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}", "{% macro m() %}{% set x = 2 %}{% endmacro %}{% set x = 1 %}{{ m() }}{{ x }}",
    "{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m('a') ~ m('b') }}{{ m('a') | length }}{{ m('x').strip('<') }}", "{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro m() %}{{ caller() }}!{% endmacro %}{% call m() %}a{{ n }}{% endcall %}",
    "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b=9) m() %}{{ a }}{{ b }}{% endcall %}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{% call m() %}a{% endcall %}", "{% call n %}a{% endcall %}", "{% call n() %}a{% endcall %}",
    "{% macro m(a, b=1, c) %}{% endmacro %}", "{% macro m %}{% endmacro %}", "{% macro m( %}{% endmacro %}", "{% macro m() %}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}", "{{ m() }}{% macro m() %}{% endmacro %}",
    "{% macro m(*a) %}{% endmacro %}", "{% macro m(a, b) %}{{ a }}-{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(1, *[2]) }}", "{{ m }}{% macro m(a=[1, 2], b={'x': n}) %}{{ a }}{{ b }}{% endmacro %}{{ m() }}", "{% macro m(x) %}{{ x.y }}{% endmacro %}{{ m(d) }}{{ m(no) }}{{ m() }}",
    "{% macro m() %}a{% endmacro %}{% set ms = [m] %}{{ ms[0]() }}", "{% macro outer() %}{% macro inner() %}i{% endmacro %}{{ inner() }}{{ inner() }}{% endmacro %}{{ outer() }}",
    # filter, with, generation, raw, comments
    "{% filter upper %}a{{ n }}b{% endfilter %}", "{% filter trim | replace('a', 'b') %} a {% endfilter %}|", "{% filter zz %}a{% endfilter %}", "{% filter upper %}{% set x = 1 %}{% endfilter %}{{ x }}",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a }}", "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}", "{% generation %}{% set a = 1 %}{{ a }}{% endgeneration %}{{ a }}",
    "{% raw %}{{ x }}{% endraw %}", "{% raw %}{% if %}{# #}{% endraw %}x", "a{%- raw -%} b {%- endraw -%} c", "{% raw %}", "{% raw %}\na\n{% endraw %}\nb", "a{# c #}b", "a {#- c -#} b", "a\n{# c #}\nb", "{# ", "{# a {# b #} c #}", "{# {{ x }} {% if %} #}x",
    "{% block a %}x{% endblock %}", "{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}", "{% zz %}", "{% %}", "{% if t %}{{ n | zz }}{% endif %}", "{% if e %}{{ n | zz }}{% endif %}ok", "{% if e %}{{ n is zz }}{% endif %}ok",
    "{% autoescape true %}{{ '<' }}{% endautoescape %}", "{% for x in l recursive %}{% endfor %}",
    # white space
    "a\n{% if t %}\nb\n{% endif %}\nc\n", "a\n  {% if t %}  \n  b\n  {% endif %}\nc\n\n", "a {%- if t %} b {%- endif %} c", "a {% if t -%} b {% endif -%} c", "a\n\n{%- if t -%}\n\nb\n\n{%- endif -%}\n\nc",
    "a\n  {%+ if t %}\nb{% endif %}", "a\n{% if t +%}\nb{% endif %}", "a\n  {{ n }}\nb", "a  {{- n -}}  b", "a\n {{- n }}\n\nb", "{{ n }}\n", "{{ n }}\n\n", "\n", "\n\n", "", " ", "a\r\nb\rc\n", "a\r\n{% if t %}\r\nb\r\n{% endif %}\r\n",
    "  {% if t %}x{% endif %}", "x  {% if t %}y{% endif %}", "\t{# c #}\tx", "a\n\t {# c #}\nb", "a\n\t {#- c -#}\n b", "a\n\t {#+ c +#}\n b", "{{ n }}  {% if t %}\n  x{% endif %}", "{% if t %}\n\n  {% endif %}\n x", "\u00a0{%- if t %}x{% endif -%}\u2003y",
    "{{ n}}{{n }}{{n}}", "{{ {'a': {'b': 1}}}}", "{{ {'a': {'b': 1}}.a.b}}", "{{ '}}' }}", "{% set x = '%}' %}{{ x }}", "{{ \"{{\" }}", "{ { n } }", "{", "{{", "{%", "{# ", "}} %} #}", "{{ n }", "{{ n %}", "{{-1}}", "{{ -1 }}", "{{+1}}", "a{{-n-}}b", "{{ n -}} b", "{{\nn\n}}", "{{ 1 -1 }}", "{{ l[-1] }}",
    "{%if t%}x{%endif%}", "{%-if t-%} x {%-endif-%}", "{% if t%}a{%else%}b{%endif %}", "a{% set x = 1 %}\n\nb", "{% set x = 1 %}{% set y = 2 -%}\n z",
    "{{ 1, 2 }}", "{{ }}", "{{ n; }}", "{{ cycler('a') }}", "{{ joiner() }}", "{{ __class__ }}", "{{ s.__class__ }}", "{{ s.__class__.__mro__ }}", "{{ d.__class__ }}|", "{{ ''['__class__'] }}|", "{{ self }}", "{{ messages }}{{ tools }}{{ add_generation_prompt }}",
]

# What jinja2 does, and Aerie refuses by name: texts of what has none, and parts of the language that no chat template uses.
REFUSED = [
    "{{ d.items }}", "{{ s.join }}", "{{ range(3) | string }}", "{{ l | map('string') | string }}", "{{ d.keys() | string }}",
    "{% set ns = namespace() %}{% set ns._a = 1 %}{{ ns._a }}", "{% set ns = namespace(a=1) %}{{ ns }}", "{% raw %}", "{# ",
    "{% block a %}x{% endblock %}", "{% autoescape true %}{{ '<' }}{% endautoescape %}", "{% for x in l recursive %}{% endfor %}",
    "{{ cycler('a') }}", "{{ joiner() }}", "{{ self }}",
]

TEMPLATES = ["{{ " + e + " }}" for line in EXPRESSIONS.split("\n") for e in split(line)] + STATEMENTS
