"""`redqueen train`: from settings to a race. `train` opens what it needs, `arms` has baselines, `plan` the costs."""
