"""Draw the pictures of the documentation: ``python -m docs.figures [NAME ...]`` in the root.

Each function makes one picture and returns it with its caption, which states the finding; a number
in a caption is computed with the picture. Pictures are written to ``docs/figures``.
"""

import argparse
import math
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from dpcal import calibrate, plot
from dpcal.accountants import epsilon, events, matrix, trade_off
from dpcal.plot import BLUE, INK, MUTED, RED
from dpcal.plot.style import figure_and_axes, figure_and_panels, note, plain_ticks

FIGURES = Path(__file__).with_name("figures")
SAMPLED, STEPS, DELTA = 0.01, 1_000, 1e-6
GAMES, CONFIDENCE = 20_000, 0.99
RATES = np.unique(np.r_[np.geomspace(1e-4, 0.1, 30), np.linspace(0.1, 0.999, 60)])


def dpsgd(noise_multiplier, *, sampling_probability=SAMPLED, steps=STEPS):
    """Return the event of steps on Poisson samples."""
    return events.dpsgd(
        sampling_probability=sampling_probability, noise_multiplier=noise_multiplier, steps=steps
    )


def scores(noise_multiplier, *, member, seed):
    """Return log-likelihood ratios of the best attack on one record, one for each game."""
    rng = np.random.default_rng(seed)
    total = np.zeros(GAMES)
    for _ in range(STEPS):
        seen = noise_multiplier * rng.standard_normal(GAMES)
        if member:
            seen += rng.random(GAMES) < SAMPLED
        ratio = np.exp((2 * seen - 1) / (2 * noise_multiplier**2))
        total += np.log1p(SAMPLED * (ratio - 1))
    return total


def interval(hits, count):
    """Return Clopper and Pearson's interval of a rate."""
    return binomtest(hits, count).proportion_ci(CONFIDENCE)


def attacker():
    """What can an attacker find out?"""
    figure, axes = figure_and_axes("What an attacker can find out", height=4.6)
    inset = axes.inset_axes([0.56, 0.09, 0.41, 0.4])
    curves = {}
    for target, at in ((0.5, 0.76), (1, 0.62), (4, 0.44), (8, 0.25)):
        noise = calibrate.noise_multiplier(dpsgd, epsilon=target, delta=DELTA)
        found = 1 - trade_off(dpsgd(noise), RATES, null="either").lower
        curves[target] = noise, np.interp(0.01, RATES, found)
        for each in (axes, inset):
            each.plot(100 * RATES, 100 * found, color=BLUE, linewidth=1.6, zorder=3)
        place = 100 * at, 100 * np.interp(at, RATES, found)
        how = {"color": BLUE, "ha": "center", "va": "center", "boxed": True, "zorder": 5}
        note(axes, f"epsilon {target:g}", place, (0, 0), **how)
    axes.fill_between(100 * RATES, 100 * found, 100, color=MUTED, alpha=0.15, linewidth=0)
    note(axes, "impossible at epsilon 8", (3, 97), (0, 0), color=INK, va="top")
    for target in (1, 4):
        outside, inside = (
            scores(curves[target][0], member=member, seed=10 * target + member)
            for member in (False, True)
        )
        for quantile in (0.8, 0.9, 0.97, 0.99):
            # The threshold is chosen on one half of the outsiders, the rates are of the other one.
            limit = np.quantile(outside[: GAMES // 2], quantile)
            alarms, hits = outside[GAMES // 2 :] > limit, inside > limit
            low, high = interval(int(hits.sum()), GAMES)
            left, right = interval(int(alarms.sum()), len(alarms))
            for each in (axes, inset):
                each.errorbar(
                    100 * alarms.mean(),
                    100 * hits.mean(),
                    xerr=[[100 * (alarms.mean() - left)], [100 * (right - alarms.mean())]],
                    yerr=[[100 * (hits.mean() - low)], [100 * (high - hits.mean())]],
                    color=RED,
                    fmt="o",
                    markersize=3,
                    linewidth=1,
                    zorder=4,
                )
    axes.plot([0, 100], [0, 100], color=MUTED, linewidth=1, linestyle=(0, (4, 2)), zorder=1)
    note(axes, "guessing", (36, 36), (4, -4), color=MUTED, va="top")
    axes.set(xlabel="false alarms, % of outsiders", ylabel="found, % of members")
    axes.set(xlim=(0, 100), ylim=(0, 100))
    inset.set(xlim=(0, 3), ylim=(0, 20))
    inset.set_title("few false alarms", fontsize=8, color=INK)
    inset.tick_params(labelsize=8)
    inset.plot([0, 3], [0, 3], color=MUTED, linewidth=1, linestyle=(0, (4, 2)))
    share = 100 * curves[1][1]
    return figure, (
        f"At epsilon 1 an attacker who is wrong about 1 % of the outsiders finds at most "
        f"{math.ceil(10 * share) / 10:.1f} % of the members; guessing finds 1 %. Lines: exact, for "
        f"{STEPS:,} steps on {SAMPLED:.0%} of the records and delta {DELTA:g}. Points: the best "
        f"attack, in {GAMES:,} games, with {CONFIDENCE:.0%} intervals."
    )


def accountants():
    """What do accountants answer as the steps of a run grow?"""
    figure, (above, below) = figure_and_panels(2, 5.4, columns=1, shared=False)
    steps = np.unique(np.geomspace(100, 10**6, 13).round().astype(int))
    runs = [dpsgd(1.0, steps=int(count)) for count in steps]
    exact = [epsilon(run, delta=DELTA) for run in runs]
    true = np.array([answer.upper for answer in exact])
    above.plot(steps, true, color=BLUE, linewidth=2, zorder=3)
    above.fill_between(steps, [each.lower for each in exact], true, color=BLUE, alpha=0.25)
    # This limit of a composition is no bound (Dong, Roth and Su 2022).
    mu = SAMPLED * np.sqrt(steps * math.expm1(1.0))
    limit = [epsilon(events.GaussianDpEvent(1 / each), delta=DELTA).upper for each in mu]
    rows = {"Gaussian limit": (limit, ":", RED)}
    for name, text, line in (("renyi", "RDP", "--"), ("pld", "PLD", "-."), ("prv", "PRV", "-")):
        most = 10**4 if name == "prv" else 10**6
        known = [run for run, count in zip(runs, steps, strict=True) if count <= most]
        found = [epsilon(run, delta=DELTA, accountant=name).upper for run in known]
        rows[text] = found, line, INK
    over = {}
    for text, (found, line, color) in rows.items():
        count = len(found)
        above.plot(steps[:count], found, line, color=color, linewidth=1.2)
        over[text] = 100 * (np.array(found) / true[:count] - 1)
        below.plot(steps[:count], over[text], line, color=color, linewidth=1.2)
    below.axhline(0, color=BLUE, linewidth=2)
    lowest = 1.15 * min(over["Gaussian limit"])
    below.axhspan(lowest, 0, color=RED, alpha=0.12, linewidth=0)
    below.set_ylim(lowest, None)
    note(below, "RDP", (steps[1], over["RDP"][1]), (6, 0), color=INK)
    note(below, "Gaussian limit", (steps[1], over["Gaussian limit"][1]), (6, -6), color=RED)
    close = max(*over["PLD"], *over["PRV"])
    text = f"PLD, PRV: at most {close:.1f} % above"
    note(below, text, (10**6, 0), (-4, 26), color=INK, ha="right")
    note(below, "below the truth: a false claim", (10**6, lowest), (-4, 4), color=RED, ha="right")
    for axes in (above, below):
        axes.set(xscale="log", xlim=(100, 10**6))
    above.set(yscale="log", ylabel="epsilon")
    plain_ticks(above.yaxis, above.get_ylim(), (0.5, 1, 3, 10, 30, 100, 300))
    below.set(xlabel="steps", ylabel="over the exact epsilon, %")
    above.set_title("Epsilon of the same run, by accountant", loc="left", color=INK)
    return figure, (
        f"RDP reports {min(over['RDP']):.0f} to {max(over['RDP']):.0f} % too much epsilon, and the "
        f"Gaussian limit up to {-min(over['Gaussian limit']):.0f} % too little. Noise multiplier "
        f"1, {SAMPLED:.0%} of the records a step, delta {DELTA:g}; dpcal's interval is the blue "
        f"line, narrower than its width."
    )


def utility(seeds=30, draws=2_000):
    """How much accuracy does privacy cost?"""
    from sklearn.model_selection import train_test_split

    from benchmarks import estimators

    figure, panels = figure_and_panels(4, 5.2, shared=False)
    targets = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
    rng = np.random.default_rng(0)
    enough = {}
    for axes, name in zip(
        panels, ("breast cancer", "digits", "census (made)", "diabetes"), strict=True
    ):
        X, y, bounds, ranges = estimators.TABLES[name]()
        classes = None if ranges else sorted(set(y.tolist()))
        split = {"test_size": 0.25, "random_state": 0, "stratify": None if ranges else y}
        A, B, a, b = train_test_split(X, y, **split)
        exact = estimators.without_privacy(1.0, bounds, ranges, classes).fit(A, a)
        rows = rng.integers(0, len(b), (draws, len(b)))
        truth = _resampled(exact.predict(B), b, rows, ranges)
        axes.axhspan(*np.quantile(truth, [0.025, 0.975]), color=MUTED, alpha=0.2, linewidth=0)
        axes.axhline(exact.score(B, b), color=MUTED, linewidth=1)
        means, gaps = [], []
        for target in targets:
            models = [
                estimators.by_dpcal(target, bounds, ranges, classes).fit(A, a) for _ in range(seeds)
            ]
            drawn = [_resampled(model.predict(B), b, rows, ranges) for model in models]
            middle = np.mean([model.score(B, b) for model in models])
            ends = np.quantile(np.concatenate(drawn), [0.025, 0.975])
            axes.plot([target, target], ends, color=BLUE, linewidth=1.5)
            means.append(middle)
            gaps.append(exact.score(B, b) - middle)
        axes.plot(targets, means, "o-", color=BLUE, markersize=3.5, linewidth=1)
        common = 0.0 if ranges else np.bincount(np.searchsorted(classes, b)).max() / len(b)
        axes.axhline(common, color=RED, linewidth=1, linestyle=":")
        within = targets[np.array(gaps) < truth.std()]
        enough[name] = f"{within[0]:g}" if len(within) else "none of these"
        axes.set(xscale="log", title=f"{name}, {len(a):,} records")
        axes.title.set(fontsize=9, color=INK)
        axes.set_xticks(targets, labels=[f"{each:g}" for each in targets])
        axes.set_xticks([], minor=True)
        axes.set_ylabel("R^2" if ranges else "accuracy", fontsize=9)
        axes.set_ylim(bottom=min(common, means[0]) - 0.08)
        axes.tick_params(labelsize=8)
    for axes in panels[2:]:
        axes.set_xlabel("epsilon")
    rest = ", ".join(f"{name} {value}" for name, value in enough.items())
    return figure, (
        f"Least epsilon of the six at which privacy costs less than one standard deviation of the "
        f"test sample: {rest}. Blue: mean and 95 % interval of {seeds} private models, with test "
        f"records drawn again; grey: without privacy; red: the commonest class, or the mean."
    )


def _resampled(predicted, truth, rows, ranges):
    """Return scores of predictions on test records that were drawn again."""
    if ranges is None:
        return (predicted == truth)[rows].mean(axis=1)
    errors = ((predicted - truth) ** 2)[rows].mean(axis=1)
    return 1 - errors / truth[rows].var(axis=1)


STRATEGIES = ("identity", "lambda-cgd=best", "banded=8", "blt=2", "tree")


def correlated():
    """How does correlated noise take itself back, and what is it worth?"""
    size, participation = 32, matrix.FixedEpochs(epochs=10, steps_per_epoch=100)
    drawn = {
        "fresh": matrix.Identity(size),
        "lambda-CGD": matrix.LambdaCGD(size, 0.8),
        "8 bands": matrix.Banded.optimised(size, 8),
        "BLT": matrix.BLT.optimised(size, 2),
        "tree": matrix.Tree(size),
    }
    figure, panels = figure_and_panels(6, 3.6, columns=3, shared=False)
    for axes, (name, strategy) in zip(panels, drawn.items(), strict=False):
        inverse = strategy.inverse()
        covariance = inverse @ inverse.T
        lengths = np.sqrt(np.diag(covariance))
        found = covariance / np.outer(lengths, lengths)
        picture = np.empty((*found.shape, 4))
        picture[:] = [0, 0x77 / 255, 0xBB / 255, 1]
        picture[found < 0, :3] = [0xEE / 255, 0x77 / 255, 0x33 / 255]
        picture[..., 3] = np.sqrt(np.abs(found)).clip(0, 1)
        axes.imshow(picture, interpolation="nearest")
        axes.grid(visible=False)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_title(name, fontsize=9, color=INK)
    panels[0].set_ylabel("step", fontsize=8)
    panels[0].set_xlabel("step", fontsize=8)
    target = {"epsilon": 2.0, "delta": DELTA, "participation": participation}
    table = calibrate.compare_strategies(steps=1_000, **target, strategies=STRATEGIES)
    by_class = {type(row.strategy): row.mean_error for row in table.rows}
    errors = [by_class[type(strategy)] for strategy in drawn.values()]
    shares = [each / errors[0] for each in errors]
    last = panels[-1]
    last.plot(shares, range(len(drawn)), "o", color=BLUE)
    for place, share in enumerate(shares):
        note(last, f"{share:.2f}", (share, place), (5, 0), va="center", fontsize=8, color=BLUE)
    last.set_yticks(range(len(drawn)), labels=drawn)
    last.set(xlim=(0, 1.35), ylim=(len(drawn) - 0.5, -0.5))
    last.tick_params(labelsize=8)
    last.set_title("error of sums", fontsize=9, color=INK)
    return figure, (
        f"At epsilon 2 the noise of BLT leaves {shares[3]:.2f} of the error of fresh noise in sums "
        f"of gradients. Maps: correlation of the noise of two of {size} steps, blue "
        f"positive and orange negative. Dots: mean error over 1,000 steps in 10 epochs, each "
        f"strategy optimised and calibrated to delta {DELTA:g}; exact."
    )


def false_claim():
    """What does a refuted claim promise, and what does it give?"""
    run = dpsgd(1.0, sampling_probability=0.1, steps=100)
    delta = 1e-5
    given = epsilon(run, delta=delta).upper
    promised = epsilon(dpsgd(10.0, sampling_probability=0.1, steps=100), delta=delta).upper
    figure, axes = figure_and_axes("A claim that is false", height=4.4)
    found = 1 - trade_off(run, RATES).lower
    claimed = 1 - trade_off(events.EpsilonDeltaDpEvent(promised, delta), RATES).lower
    axes.plot(100 * RATES, 100 * found, color=RED, linewidth=2)
    axes.plot(100 * RATES, 100 * claimed, color=BLUE, linewidth=2)
    axes.fill_between(100 * RATES, 100 * claimed, 100 * found, color=RED, alpha=0.15, linewidth=0)
    axes.plot([0, 100], [0, 100], color=MUTED, linewidth=1, linestyle=(0, (4, 2)))
    note(axes, f"printed: epsilon {promised:.2f}", (57, 50), (0, 0), color=BLUE, va="top")
    note(axes, f"in truth: epsilon {given:.2f}", (3, 95), (0, 0), color=RED, va="top")
    note(axes, "guessing", (36, 36), (4, -4), color=MUTED, va="top")
    axes.set(xlabel="false alarms, % of outsiders", ylabel="found, % of members")
    axes.set(xlim=(0, 100), ylim=(0, 101))
    one, other = (100 * np.interp(0.01, RATES, each) for each in (claimed, found))
    return figure, (
        f"The printed noise promises epsilon {promised:.2f} and gives {given:.2f}: at 1 % of false "
        f"alarms an attacker finds {other:.0f} % of the members, where the claim allows {one:.1f} "
        f"%. Erratum E04 of the KAN paper: it divides the noise by a clip of 0.1. 100 steps on 10 "
        f"% of the records, delta {delta:g}; the red line is exact."
    )


def loaders():
    """What does each way to draw batches cost?"""
    run = calibrate.SampledRun(n=60_000, batch_size=512, epochs=100, noise_multiplier=0.8)
    rows = calibrate.compare_samplers(run, delta=1e-5)
    drawn = []
    for row in rows:
        ends = {"lower": float(row.epsilon.lower), "upper": float(row.epsilon.upper)}
        wide = ends["upper"] > 1.01 * ends["lower"]
        text = "{lower:.1f} to {upper:.1f}" if wide else "{upper:.2f}"
        drawn.append((row.run.sampler, text.format(**ends), ends))
    costs = {name: ends for name, _, ends in drawn}
    least, most = costs["poisson"]["upper"], costs["shuffled-epochs"]["lower"]
    figure = plot.samplers(drawn, delta=1e-5)
    return figure, (
        f"A shuffle costs at least {most / least:.1f} times the epsilon of Poisson samples. "
        f"Batches of 512 of 60,000 records, 100 epochs, noise multiplier 0.8, delta 1e-5. The "
        f"relations differ: the claim of a shuffle is about a record that is zeroed out, the "
        f"others are about one that is added or removed. The bar is proved on both sides."
    )


PICTURES = {
    "loaders": loaders,
    "attacker": attacker,
    "accountants": accountants,
    "utility": utility,
    "correlated": correlated,
    "false-claim": false_claim,
}


def main():
    """Draw the pictures that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(PICTURES)} (all)")
    for name in parser.parse_args().names or PICTURES:
        figure, caption = PICTURES[name]()
        title = PICTURES[name].__doc__.splitlines()[0]
        text = plot.svg(figure, title=title, description=caption)
        (FIGURES / f"{name}.svg").write_text(text, encoding="utf-8")
        print(f"{name}: {caption}", flush=True)


if __name__ == "__main__":
    main()
