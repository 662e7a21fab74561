"""Deterministic bounds on delta and on epsilon, proved without draws.

>>> from dpcal.accountants.correlated.bounds.reductions import revealed
>>> from dpcal.accountants.correlated.mechanism import Mechanism
>>> from dpcal.accountants.correlated.price import Question
>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import LambdaCGD
>>> mechanism = Mechanism.of(LambdaCGD(100, 0.5), noise_multiplier=4.0)
>>> sampler = Poisson(0.01)
>>> everybody_knows = revealed(mechanism, sampler).epsilon(1e-5)
>>> best = Question.of(LambdaCGD(100, 0.5), sampler, 4.0).proved.epsilon(1e-5)
>>> best.value < everybody_knows.value / 4, best.method[:5]
(True, 'Renyi')
"""

__all__: list[str] = []
