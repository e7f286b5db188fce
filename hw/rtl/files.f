tenon_pkg.sv
compute_pkg.sv
