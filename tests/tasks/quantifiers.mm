$( A few rules of predicate calculus, with distinct variables: not minimal, and true in every domain of two things or
more.  $)
$c ( ) -> -. wff |- setvar A. = $.
$v ph ps ch th ta x y z $.
wph $f wff ph $.  wps $f wff ps $.  wch $f wff ch $.  wth $f wff th $.  wta $f wff ta $.
vx $f setvar x $.  vy $f setvar y $.  vz $f setvar z $.

wn $a wff -. ph $.
wi $a wff ( ph -> ps ) $.
wal $a wff A. x ph $.
weq $a wff x = y $.

ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
ax-2 $a |- ( ( ph -> ( ps -> ch ) ) -> ( ( ph -> ps ) -> ( ph -> ch ) ) ) $.
ax-3 $a |- ( ( -. ph -> -. ps ) -> ( ps -> ph ) ) $.
${ mp.1 $e |- ph $.  mp.2 $e |- ( ph -> ps ) $.  ax-mp $a |- ps $. $}
${ a1i.1 $e |- ph $.  a1i $p |- ( ps -> ph ) $= wph wps wph wi a1i.1 wph wps ax-1 ax-mp $. $}
${ syl.1 $e |- ( ph -> ps ) $.  syl.2 $e |- ( ps -> ch ) $.  syl $a |- ( ph -> ch ) $. $}
${ con3i.1 $e |- ( ph -> ps ) $.  con3i $a |- ( -. ps -> -. ph ) $. $}
${ imim1i.1 $e |- ( ph -> ps ) $.  imim1i $a |- ( ( ps -> ch ) -> ( ph -> ch ) ) $. $}
${ imim2i.1 $e |- ( ph -> ps ) $.  imim2i $a |- ( ( ch -> ph ) -> ( ch -> ps ) ) $. $}
${ com12.1 $e |- ( ph -> ( ps -> ch ) ) $.  com12 $a |- ( ps -> ( ph -> ch ) ) $. $}
id $a |- ( ph -> ph ) $.
notnot $a |- ( ph -> -. -. ph ) $.

${ gen.1 $e |- ph $.  ax-gen $a |- A. x ph $. $}
ax-4 $a |- ( A. x ( ph -> ps ) -> ( A. x ph -> A. x ps ) ) $.
${ $d x ph $.  ax-5 $a |- ( ph -> A. x ph ) $. $}
ax-6 $a |- -. A. x -. x = y $.
ax-7 $a |- ( x = y -> ( x = z -> y = z ) ) $.
ax-11 $a |- ( A. x A. y ph -> A. y A. x ph ) $.
sp $a |- ( A. x ph -> ph ) $.
equid $a |- x = x $.
equcomi $a |- ( x = y -> y = x ) $.
${ alimi.1 $e |- ( ph -> ps ) $.  alimi $a |- ( A. x ph -> A. x ps ) $. $}
${ alsyl.1 $e |- ( ph -> A. x ps ) $.  alsyl.2 $e |- ( ps -> ch ) $.  alsyl $a |- ( ph -> A. x ch ) $. $}
$( There are two things: whoever proves that all are equal to y has proved a falsehood.  $)
${ $d x y $.  two.1 $e |- ( x = y -> A. x x = y ) $.  two $a |- ph $. $}
