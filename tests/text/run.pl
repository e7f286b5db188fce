#!/usr/bin/env perl
# Runs text tests, as LLVM's lit and FileCheck do: perl tests/text/run.pl TENON FILE|FOLDER...
#
# A test is a .tn file with comments that start with a directive:
#   // RUN: [not] tenon opt %s --passes simplify    a command, which succeeds, or fails after `not`; %s is the file, %t a
#                                                   path for files that it writes
#   // CHECK: relu(%x)         a line of its output (standard output and error) has this text, {{...}} being a regular
#                              expression; each CHECK matches after the line that the one before it matched
#   // CHECK-NEXT: ...         the next line has it
#   // CHECK-NOT: ...          no line up to the next match has it, or up to the end
# Directives apply to the RUN before them.
use strict;
use warnings;
use File::Find;
use File::Temp qw(tempdir);

my ($tenon, @paths) = @ARGV;
die "usage: run.pl TENON FILE|FOLDER...\n" unless @paths;
my @files;
find({no_chdir => 1, wanted => sub { push @files, $_ if /\.tn$/ }}, @paths);
die "error: there are no .tn files in @paths\n" unless @files;
my $scratch = tempdir(CLEANUP => 1);

my $failed = 0;
for my $file (sort @files) {
  my $problem = run_file($file);
  ++$failed if defined $problem;
  print defined $problem ? "FAIL $file\n$problem" : "ok   $file\n";
}
printf "%d passed, %d failed\n", @files - $failed, $failed;
exit($failed ? 1 : 0);

# Returns what is wrong with the file's test; undef where it passes.
sub run_file {
  my ($file) = @_;
  my @runs;
  open my $in, '<', $file or return "cannot be read: $!\n";
  while (my $line = <$in>) {
    next unless $line =~ m{^\s*//\s*(RUN|CHECK|CHECK-NEXT|CHECK-NOT):\s*(.*?)\s*$};
    if ($1 eq 'RUN') { push @runs, {command => $2, line => $., checks => []} }
    elsif (@runs) { push @{$runs[-1]{checks}}, {kind => $1, text => $2, line => $.} }
    else { return "line $.: $1 comes before the first RUN\n" }
  }
  return "has no RUN line\n" unless @runs;
  return "has no CHECK line and no RUN line with `not`: it cannot fail\n"
    unless grep { @{$_->{checks}} || $_->{command} =~ /^not / } @runs;
  for my $run (@runs) {
    my $problem = run_command($file, $run);
    return $problem if defined $problem;
  }
  return undef;
}

sub run_command {
  my ($file, $run) = @_;
  my $command = $run->{command};
  my $wanted = ($command =~ s/^not\s+//) ? 'fail' : 'succeed';
  $command =~ s/^tenon\b/'$tenon'/;
  $command =~ s/%s/$file/g;
  $command =~ s{%t}{$scratch/t}g;
  my $output = `$command 2>&1`;
  my $status = $?;
  return "line $run->{line}: '$run->{command}' ended by signal @{[$status & 127]}\n$output" if $status & 127;
  my $exit = $status >> 8;
  return "line $run->{line}: '$run->{command}' should $wanted, its exit status is $exit\n$output"
    if ($exit == 0) ne ($wanted eq 'succeed');
  my @lines = split /\n/, $output;
  my ($next, @absent) = (0);
  for my $check (@{$run->{checks}}) {
    my $pattern = join '', map { /^\{\{(.*)\}\}$/ ? "(?:$1)" : quotemeta } split /(\{\{.*?\}\})/, $check->{text};
    if ($check->{kind} eq 'CHECK-NOT') { push @absent, {%$check, pattern => $pattern}; next }
    my $at = $next;
    if ($check->{kind} eq 'CHECK') { ++$at while $at < @lines && $lines[$at] !~ /$pattern/ }
    return "line $check->{line}: $check->{kind}: $check->{text}\n  is not in the output after its line $next:\n$output"
      if $at >= @lines || $lines[$at] !~ /$pattern/;
    my $problem = unwanted(\@absent, \@lines, $next, $at);
    return $problem if defined $problem;
    ($next, @absent) = ($at + 1);
  }
  return unwanted(\@absent, \@lines, $next, scalar @lines);
}

sub unwanted {
  my ($absent, $lines, $from, $to) = @_;
  for my $check (@$absent) {
    for my $at ($from .. $to - 1) {
      return "line $check->{line}: CHECK-NOT: $check->{text}\n  is in line @{[$at + 1]} of the output:\n$lines->[$at]\n"
        if $lines->[$at] =~ /$check->{pattern}/;
    }
  }
  return undef;
}
