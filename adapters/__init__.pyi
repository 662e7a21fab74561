from dpcal.adapters import (
    flower as flower,
    loaders as loaders,
    opacus as opacus,
    optax as optax,
    stepwise as stepwise,
    torch as torch,
)
