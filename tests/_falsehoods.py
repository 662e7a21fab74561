"""False claims, each with the reason, and a few true ones that look like them.

No audit may pass one of them. They go wrong in one place each: an exponent, one percent, a strict
sign, an end of a range, a rounding, a base, an order, a direction, a sum, a unit, a hidden
condition, sides that touch, a place that is far away, a narrow dip.
"""

from dpcal.calibrate.papers import Enumeration, Quantity, Schedule, auxiliary, settings_of
from dpcal.calibrate.papers.claims.language import theorems_of

QUANTITIES = (
    Quantity("n", "records", range="[1, oo)", whole=True),
    Quantity("m", "silos", range="[1, oo)", whole=True),
    Quantity("d", "dimension", range="[1, oo)", whole=True),
    Quantity("k", "index", range="[0, oo)", whole=True),
    Quantity("epsilon", "target", range="(0, 1]"),
    Quantity("delta", "target", range="(0, 1)"),
    Quantity("q", "rate", range="(0, 1]"),
    Quantity("kappa", "exponent", range="[1, 2]"),
    Quantity("G", "Lipschitz constant", {"loss": 1, "parameter": -1}),
    Quantity("L", "smoothness", {"loss": 1, "parameter": -2}),
    Quantity("F0", "gap", {"loss": 1}),
    Quantity("D", "diameter", {"parameter": 1}),
    Quantity("s", "a value"),
    *auxiliary("x y z a b c u"),
    *auxiliary("w v", range="(-oo, oo)"),
)
SETTINGS = settings_of("""
    T: n**2*epsilon**2/(8*d*log(1/delta)); up  # made up
    P: n/4; down  # made up
    sigma: G*sqrt(T*log(1/delta))/(n*epsilon)  # made up
    eta: D/(G*sqrt(T))  # made up
""")
CHECKS = {"all_but_one": Enumeration("", lambda j: j != 7, range(10), complete=True)}
FALSE = """
Exponents:
    root: (x*y)**(1/3) <= (x + y)/2  # x = y = 1/100
    weights: x**(2/3)*y**(1/3) <= x/3 + 2*y/3  # x = 8, y = 1
    series: (1 + x)**(3/2) <= 1 + 3*x/2 + x**2/4  # x = 10
    half_a_root: sqrt(x + y) <= sqrt(x) + y  # x near 0, y = 1/100
    largest_power: x**kappa <= x + x**(3/2)  # kappa = 2, x = 100
    smallest_power: x**(1/kappa) <= Max(x, x**(11/20))  # x = 1/2, kappa = 2
One percent:
    logarithm: log(1 + x) <= 99/100*x  # x = 1/1000
    means: 2*sqrt(x*y) <= 99/100*(x + y)  # x = y
    peak: x*exp(-x) <= 367/1000  # 1/e = 0.36788
    tail: erfc(x) <= 99/100*exp(-x**2) where x in [0, 1]  # x = 0
    variance: x*(1 - x) <= 2475/10000 where x in [0, 1]  # x = 1/2
    e: (1 + 1/n)**n <= 27/10  # n = 200
    noise: release 1 with noise 42/10 within 1, 1/10**6  # 4.2247 is needed
Strict signs:
    equal_means: 2*sqrt(x*y) < x + y  # x = y
    log_at_zero: log(1 + w) < w where -1 < w  # w = 0
    whole: n < ceiling(n)  # n is whole
    one: 1 < n  # n = 1
    squares: x*y < x**2/2 + y**2/2  # x = y
    kappa_two: kappa < 2  # kappa = 2
    half: q*(1 - q) < 1/4  # q = 1/2
    exp_at_zero: exp(w) > 1 + w  # w = 0
    young: x*y < x**3/3 + 2*y**(3/2)/3  # x**3 = y**(3/2)
    three_means: (x + y + z)/3 > (x*y*z)**(1/3)  # x = y = z
    divergence: x*log(x/y) > x - y  # x = y
    max_and_min: Max(x, y) < x + y - Min(x, y)/2 - Abs(x - y)*0 - Min(x, y)/2  # equal everywhere
    four_to_one: 4*sqrt(x*y) < 4*x + y  # y = 4*x
    roots: 2*sqrt(x)*sqrt(y) < x + y  # x = y = 2, where the roots are no fractions
Swapped sides:
    parts: x - x**2/2 + x**3/3 <= log(1 + x) where x in [0, 1]  # x = 1
    extrema: Max(x, y) <= Min(x, y)  # x = 1, y = 2
    norms: sqrt(x**2 + y**2) <= Max(x, y)  # x = y
    harmonic: (x + y)/2 <= 2*x*y/(x + y)  # x = 1, y = 2
Ends of ranges:
    pole: 1/(1 - q) <= 10**9 where q < 1  # q near 1
    entropy: x*log(1/x) <= 36/100 where x in [1/10, 1]  # x = 1/e
    chord: x/2 <= log(1 + x) where x in [0, 26/10]  # x = 2.6
    parabola: exp(x) <= 1 + x + x**2 where x in [0, 9/5]  # x = 1.8
    wave: sin(x) <= x*cos(x/2) where x in [0, 4]  # x = 4
    small_epsilon: 1 <= epsilon*1000  # epsilon = 1/10000
Whole numbers:
    floor_of_a_quarter: n <= 4*floor(n/4)  # n = 5
    ceiling_of_a_quarter: 4*ceiling(n/4) <= n + 2  # n = 1
    sum_of_floors: floor(x) + floor(y) = floor(x + y)  # x = y = 1/2
    product_of_ceilings: ceiling(x*y) <= ceiling(x)*floor(y) + 1  # y = 1/2, x = 10
    square_of_a_floor: floor(sqrt(n))**2 = n  # n = 2
    odd: 2*floor(n/2) + 1 <= n  # n = 2
    blocks: ceiling(n/m)*m <= n + m - 2  # n = m = 1
Bases of logarithms:
    base_two: log(n)/log(2) <= log(n) + 1/100  # n = 3
    base_ten: log(n)/log(10) = log(n)*log(10)/5  # n = 2
    power_of_two: x <= 2**(log(x)) where 1 <= x  # x = 4
    quarter: x/4 <= 2**(log(x)) where 100 <= x  # x = 10**6
Orders of growth:
    by_a_logarithm: n*log(n) =O n; growth n = 1
    under_a_logarithm: n**2 =O n**2/log(n); growth n = 1
    cancelled: n =O n - sqrt(n)*sqrt(n) + sqrt(n); growth n = 1  # the right side is sqrt(n)
    difference: sqrt(n + sqrt(n)) - sqrt(n) =O n**(-1/10); growth n = 1  # it tends to 1/2
    free_exponent: d*n**kappa =O d*n**(3/2); growth n = 1  # kappa = 2
    soft: n**2 =O~ n**(19/10); growth n = 1
    exponential: (1 + 1/n)**(n**2) =O n; growth n = 1
    small_target: n/epsilon =O n; growth n = 1, epsilon = -1/2
    large_dimension: Max(n, d**2) =O n; growth n = 1, d = 2/3
Directions:
    falling: (1 - q)**n <= (1 - q)**(n + 1) where q < 1
    rising: x/(1 + x) <= y/(1 + y) where y <= x
    both: x*exp(-x) <= y*exp(-y) where x <= y
    compound: (1 + 1/x)**x <= (1 + 1/y)**y where y <= x
    steps: sqrt(x + 1) - sqrt(x) <= sqrt(y + 1) - sqrt(y) where x <= y
Sums and extrema:
    sum: x + y <= Max(x, y)
    half_a_max: Max(x + y, z) <= Max(x, z) + Max(y, z)/2  # y = 1, x and z near 0
    crossed: Max(x, y)*Max(a, b) <= Max(x*a, y*b)  # x = b = 2, y = a = 1
    roots_of_extrema: sqrt(Max(x, y)) + sqrt(Min(x, y)) <= sqrt(x + y)
    sum_of_minima: Min(x, y) + Min(a, b) = Min(x + a, y + b)
    square_of_a_max: Max(w, v)**2 <= Max(w**2, v*w)  # w = 0, v = 1
Units:
    quotient: [G/L] = 1/parameter
    number: [F0/(G*D)] = parameter
    root_of_a_product: [sqrt(F0*L)] = loss
    step: [eta] = parameter/loss
    mixed: [G*D + F0**2] = loss
    exponent: [exp(F0)] = 1
    maximum: [Max(G, L)] = loss/parameter
Hidden conditions:
    product_of_logs: log(x*y) = log(x)*log(y)  # x = y = 1
    a_millionth: (w**2)**(1/2)*v <= Abs(w*v) - 1/1000000 where w in [1, 2], v in [1, 2]
    power_of_a_sum: x**a*y**a = (x + y)**a
    exp_of_a_sum: exp(w + v) <= exp(w) + exp(v)  # w = v = 1
    accumulated: s <= x*(1 + k); recursion s over k from 0, first x, next s + 101/100*x  # k = 1
    square: s = k**2; recursion s over k from 0, first 0, next s + 2*k + 2  # k = 1
    limit: s <= 2; recursion s over k from 0, first 1, next s/2 + 101/100  # it tends to 2.02
    cases: check all_but_one
    signs: 0 <= w*v where w <= v  # w = -1, v = 1
    defined: T*8*d*log(1/delta) = n**2*epsilon; definition  # epsilon is squared
    composed: release 2*G/n with noise sigma times T within epsilon**2/(2*log(1/delta))  # 4 times
    sampled: release G with noise G*x on a sample q within order 2, q**2/x**2; relation
        add-or-remove-one  # log(1 + q**2*(exp(1/x**2) - 1)) is larger for small x
Far away:
    slow_power: log(n) <= 36*n**(1/100)  # n = e**100
    squared_logarithm: log(n)**2 <= 50*n**(1/10)  # n = e**20
    near_one: 1/(1 - q) <= 10**9 + 0*q where q < 1  # q near 1
    small_delta: log(1/delta) <= 1000  # delta = e**(-1001)
    thousandth: 1 <= epsilon*1000 + 0*epsilon  # epsilon = 1/10000
    error: sqrt(d)/(n*epsilon) <= 1 + d/n**2 + 10**12/n  # epsilon = 10**-13, n = 1, d = 1
    saturated: x/(1 + x) <= 1 - 1/10**6  # x = 10**7
Narrow dips:
    line: 10**6*(x - 314159/100000)**2 + y >= 1/1000  # x = 3.14159, y near 0
    crossing: (x*y - 1)**2 + (x - 77/100)**2 >= 1/10**6  # x = 0.77, y = 1/x
    irrational: x**4 - 2*x**2*y + y**2 + (y - 17/10)**2 > 0  # y = 1.7, x = sqrt(y)
    valley: x**2 + y**2 - 2*x*y + (x - 271/100)**2*10**3 >= 1/10**8  # x = y = 2.71
    tangent: exp(x) + exp(-y) - 2 - (x - y) + (x - 137/1000)**2 + 1/10**9 > 4*10**-8 +
        exp(137/1000) + 0*y - 1 - 137/1000 where y <= 10**-12 + 0*x  # x = 0.137, y near 0
"""
TRUE = """
True ones that look like false ones:
    percent: 99/100*(1 + x) <= exp(x) - 2/100*x where x in [0, 1/100]
    larger: Max(x, y) < x + y where x <= 0*y + 1, x*y <= x*y
    swapped: exp(x) - 1 <= x*exp(x) - x**2 where 1 <= x
    not_rounded: n <= 4*P  # before it is rounded
    two_to_the_log: 2**(log(x)) <= x/2 where 100 <= x
"""


def schedule(text: str) -> Schedule:
    """Return claims as a schedule."""
    return Schedule(
        name="s",
        title="",
        citation="",
        quantities=QUANTITIES,
        settings=SETTINGS,
        claims=theorems_of(text, CHECKS),
    )
