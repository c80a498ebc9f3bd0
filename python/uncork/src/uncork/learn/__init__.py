"""`uncork learn`: from experiments to a table that says which network gets which controller, and why.

| modules | purpose |
|---|---|
| `evidence`, `daily` | the query, and its results from roll-ups day by day |
| `lift`, `tree`, `mixture` | estimates and their shrinkage |
| `entries` | each network's active entry and its evidence |
| `choice`, `monotone` | one of several treated arms, and the order of windows |
| `decide` | the decisions |
| `version`, `store` | inputs as the bytes of files, and the versions |
| `loop`, `fleet` | plans again and again, and publishes |
| `twin` | a twin's predictions, compared with measurements |
"""
