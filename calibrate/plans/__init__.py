"""Plan builders: from public constants and a privacy target to the plan of a run.

A builder has the name of its optimizer. These parameters mean the same in every builder that takes
them; a builder's own docstring adds its particulars.

constants
    Public constants of one record's loss (:class:`dpcal.calibrate.Constants`). A builder names the
    constants that it needs; a missing or infinite one is refused.
public
    Whether the records, or the constants that depend on them, are public; False by default, and
    then constants that were measured on records are refused.
n
    Number of records, >= 1, public. If it was counted from the records, one more record would
    change it: use ``"replace-special"`` then.
dimension
    Number of parameters d, >= 1.
epsilon, delta
    Target: epsilon >= 0, delta in (0, 1).
noise_multiplier
    In place of ``epsilon``, which then follows: noise > 0 of a step of ``dpsgd`` and
    ``correlated_dpsgd``; for other builders, the noise of one Gaussian release that costs as much
    as the whole plan, so that T answers with equal noise have sqrt(T) times as much.
accountant
    The accountant that must meet the target, for the plan and its ledger: ``"auto"``,
    ``"characteristic"``, ``"renyi"``, ``"pld"`` or ``"prv"``.
neighboring_relation
    ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``. Builders with disjoint
    batches take the last two: a record must stay in its batch.
group_size
    Number of records >= 1 that a person has at most: the claim is about all records of a person.
    Whoever hands in the records keeps more of them out, by a rule that reads only that person's.
clipped
    ``"row"``: rows are drawn, and each is clipped. ``"user"``: persons are drawn, and the sum of
    a person's rows is clipped (:class:`dpcal.optim.Users`); n is the number of persons then.
steps
    Number of steps, >= 1.
batch_size
    Expected number of records of a sample, in [1, n].
max_norm
    Bound C > 0 to which the gradient of each record is clipped; ``constants.lipschitz`` when
    omitted.
learning_rate
    Step size > 0.
preset
    ``"theory"``: the settings of the cited theorem, corrected (see the errata). ``"practical"``:
    settings that the builder's docstring derives.
beta, failure_probability
    Failure probability of the promised accuracy, in (0, 1).
l2
    Strength >= 0 of the objective's regulariser, which adds to the smoothness of steps.

Every builder raises ValueError or TypeError for an argument out of range, and TargetUnreachable if
no noise level separates meeting the target from missing it. It warns of a ``VacuousSchedule`` where
its theorem promises nothing at these sizes, where a run would take no step, or weeks, and where a
threshold is below the noise of the number it is compared with. A promise is in
``parameters["accuracy"]`` of the plan; see :attr:`dpcal.calibrate.Plan.accuracy_kind`.
"""

__all__: list[str] = []
