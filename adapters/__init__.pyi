from dpcal.adapters import (
    flower as flower,
    loaders as loaders,
    opacus as opacus,
    optax as optax,
    pipeline_dp as pipeline_dp,
    ranks as ranks,
    rounds as rounds,
    stepwise as stepwise,
    torch as torch,
)
