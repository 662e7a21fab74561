from dpcal.adapters import (
    device_noise as device_noise,
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
