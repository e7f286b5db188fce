# All pins of the design are the processor's, which Vivado knows.
set_property BITSTREAM.GENERAL.COMPRESS TRUE [current_design]
