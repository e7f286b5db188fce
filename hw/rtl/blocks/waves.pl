#!/usr/bin/env perl
# Draws waveforms of a VCD file into pages, and holds pages against it:
#
#   perl hw/rtl/blocks/waves.pl WAVES.vcd PAGE... [--update]
#
# A page asks for a waveform by a comment, which the drawing follows as a block of code:
#
#   <!-- waves SCOPE from SIGNAL+N cycles M: SIGNAL SIGNAL[high:low] SIGNAL?VALID ... -->
#
# SCOPE is below the top module, as u_st/u_port, or `.`. The drawing begins N cycles after the one in which the first
# SIGNAL is not 0 any more for the first time (N may be negative), and has M cycles. A column is a cycle: what registers see at its end. A
# signal of one bit is a line, low or high; any other has its value in hexadecimal where it changes. With ?VALID, a
# signal of one bit of the same scope or a bit of another one, the value is shown where this is 1 and `-` elsewhere.
# Exit code 1: a page differs, and lines say where; with --update the pages are written instead.
use strict;
use warnings;
use utf8;

my $update = grep { $_ eq '--update' } @ARGV;
my ($file, @pages) = grep { $_ ne '--update' } @ARGV;
die "Usage: perl hw/rtl/blocks/waves.pl WAVES.vcd PAGE... [--update]\n" unless @pages;
my $kWidth = 4;  # characters of a cycle

my ($codes, $samples) = read_waves($file);
my $differs = 0;
$differs |= page($_) for @pages;
exit $differs;

# The codes of signals by their paths below the top module, and the values at the end of each cycle, by code.
sub read_waves {
  my ($path) = @_;
  open my $in, '<', $path or die "$path: $!\n";
  my (@scopes, %codes, %now, @samples);
  my ($clock, $high) = (undef, 0);
  while (my $line = <$in>) {
    if ($line =~ /^\s*\$scope \w+ (\S+)/) { push @scopes, $1; }
    elsif ($line =~ /^\s*\$upscope/) { pop @scopes; }
    elsif ($line =~ /^\s*\$var \w+\s+\d+ (\S+) (\w+)/) { $codes{join '/', @scopes[2 .. $#scopes], $2} = $1 if @scopes >= 2; }
    elsif ($line =~ /^\$enddefinitions/) { $clock = $codes{clk_i} // die "$path: the top module has no clk_i\n"; }
    elsif ($line =~ /^#/) { push @samples, undef; $samples[-1] = {%now}; }
    elsif ($line =~ /^b(\S+) (\S+)/ || $line =~ /^([01xz])(\S+)/) { $now{$2} = $1; }
  }
  # The values before the clock rises are those of the time before.
  my @ends;
  for my $i (1 .. $#samples) {
    push @ends, $samples[$i - 1] if ($samples[$i - 1]{$clock} // 'x') eq '0' && $samples[$i]{$clock} eq '1';
  }
  return (\%codes, \@ends);
}

# The text of a value, as bits from high to low of a signal that may have leading zeros left out.
sub bits_of {
  my ($sample, $path, $high, $low) = @_;
  my $code = $codes->{$path} // die "the waves have no signal $path\n";
  my $bits = $sample->{$code} // 'x';
  return $bits unless defined $high;
  $bits = ('0' x ($high + 1 - length $bits)) . $bits if length $bits <= $high;
  return substr $bits, length($bits) - 1 - $high, $high - $low + 1;
}

sub hexadecimal {
  my ($bits) = @_;
  return $bits eq '-' ? '-' : 'x' if $bits =~ /[^01]/;
  $bits = '0' x (-length($bits) % 4) . $bits;
  my $text = join '', map { sprintf '%x', oct "0b$_" } $bits =~ /(.{4})/g;
  $text =~ s/^0+(?=.)//;
  return $text;
}

sub line_of {
  my @values = @_;
  return join '', map { $values[$_] eq '1' ? ($_ && $values[$_ - 1] eq '0' ? '/' : '‾') . '‾' x ($kWidth - 1)
                        : ($_ && $values[$_ - 1] eq '1' ? '\\' : '_') . '_' x ($kWidth - 1) } 0 .. $#values;
}

# Each value where it begins, cut off where the next one follows too early.
sub values_of {
  my @values = @_;
  my $text = '';
  for (my $i = 0; $i < @values;) {
    my $end = $i + 1;
    ++$end while $end < @values && $values[$end] eq $values[$i];
    my $room = ($end - $i) * $kWidth - 1;
    my $shown = hexadecimal($values[$i]);
    $shown = substr($shown, 0, $room - 1) . '~' if length $shown > $room;
    $text .= '|' . $shown . ' ' x ($room - length $shown);
    $i = $end;
  }
  return $text;
}

# The values of SIGNAL or SIGNAL[high:low] at the ends of some cycles.
sub values_at {
  my ($prefix, $signal, $begin, $cycles) = @_;
  my ($name, $high, $low) = $signal =~ /^([\w\/]+)(?:\[(\d+)(?::(\d+))?\])?$/ or die "'$signal' is no signal\n";
  return map { bits_of($samples->[$_], "$prefix$name", $high, $low // $high) } $begin .. $begin + $cycles - 1;
}

sub draw {
  my ($scope, $from, $offset, $cycles, @signals) = @_;
  my $prefix = $scope eq '.' ? '' : "$scope/";
  my @asked = map { bits_of($_, "$prefix$from") =~ /1/ ? 1 : 0 } @$samples;
  my ($first) = grep { $asked[$_] && !$asked[$_ - 1] } 1 .. $#asked;
  die "$prefix$from never becomes 1\n" unless defined $first;
  my $begin = $first + $offset;
  die "the waves end within $cycles cycles of $prefix$from\n" if $begin < 0 || $begin + $cycles > @$samples;
  my ($widest) = sort { $b <=> $a } map { length s/\?.*//r } @signals;
  my $text = sprintf "%-*s ", $widest, 'cycle';
  $text .= sprintf "%-*s", $kWidth, $_ for 0 .. $cycles - 1;
  $text =~ s/ +$//;
  $text .= "\n";
  for my $signal (@signals) {
    my ($shown, $valid) = split /\?/, $signal;
    my @values = values_at($prefix, $shown, $begin, $cycles);
    my $is_line = !grep { length > 1 } @values, values_at($prefix, $shown, 0, scalar @$samples);
    if (defined $valid) {
      my @valid = values_at($prefix, $valid, $begin, $cycles);
      @values = map { $valid[$_] eq '1' ? $values[$_] : '-' } 0 .. $#values;
    }
    my $wave = $is_line ? line_of(@values) : values_of(@values);
    $wave =~ s/ +$//;
    $text .= sprintf "%-*s %s\n", $widest, $shown, $wave;
  }
  return $text;
}

# Returns whether the page differs from its waves, and was not written.
sub page {
  my ($path) = @_;
  open my $in, '<:encoding(UTF-8)', $path or die "$path: $!\n";
  my $old = do { local $/; <$in> };
  close $in;
  my $count = 0;
  my $made = $old;
  $made =~ s{(<!-- waves (\S+) from ([\w/]+)([+-]\d+)? cycles (\d+):\s*(.*?)\s*-->\n)(\n```text\n.*?```\n)?}{
    ++$count;
    my ($request, @asked) = ($1, $2, $3, $4 // 0, $5, split ' ', $6);
    my $drawn = eval { draw(@asked) };
    die "$path: $@" unless defined $drawn;
    "$request\n```text\n$drawn```\n"
  }gse;
  die "$path: it asks for no waves\n" unless $count;
  return 0 if $made eq $old;
  if ($update) {
    open my $out, '>:encoding(UTF-8)', $path or die "$path: $!\n";
    print $out $made;
    close $out or die "$path: $!\n";
    return 0;
  }
  my @old = split /\n/, $old;
  my @made = split /\n/, $made;
  my ($line) = grep { ($old[$_] // '') ne ($made[$_] // '') } 0 .. $#made;
  binmode STDOUT, ':encoding(UTF-8)';
  $line //= $#made;
  printf "%s:%d: the page differs from the simulation\n  has    %s\n  waves  %s\n", $path, $line + 1, $old[$line] // '', $made[$line] // '';
  return 1;
}
