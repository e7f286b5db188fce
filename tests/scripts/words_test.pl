#!/usr/bin/env perl
# Finds the words of words.txt: in identifiers, comments and messages of the sources, and in the documents.
#   words_test.pl            the uses in all four kinds, with file and line; exit code 1 where there are any
#   words_test.pl --table    how often each word stands in identifiers, comments, messages and documents
#   words_test.pl --list KIND [WORD]   each use in a kind: identifiers, comments, messages or documents
use strict;
use warnings;

my ($mode, $kind_wanted, $word_wanted) = @ARGV;
$mode //= '--test';
chomp(my $root = `git rev-parse --show-toplevel`);
chdir $root or die "cannot enter $root\n";

my (@words, %instead, %usual);
open my $list, '<', 'tests/scripts/words.txt' or die "tests/scripts/words.txt: $!\n";
while (<$list>) {
  next if /^#/ || /^\s*$/;
  chomp;
  my ($word, $say, $phrases) = split /\s*;\s*/, $_, 3;
  push @words, $word;
  $instead{$word} = $say;
  $usual{$word} = [map { qr/$_/i } grep { length } split /\s+\|\s+/, $phrases // ''];
}

my $any = join '|', map { quotemeta } @words;
my $any_word = qr/\b(?:$any)(?:e?s)?\b/i;

my @kinds = qw(identifiers comments messages documents);
my (%count, @found);

sub look {  # text of one kind at one line
  my ($file, $line, $kind, $text) = @_;
  my $plain = $text;
  if ($kind eq 'identifiers') {  # their parts as words
    $plain =~ s/([a-z0-9])([A-Z])/$1 $2/g;
    $plain =~ s/\bk([A-Z])/$1/g;
    $plain =~ s/_/ /g;
  }
  return unless $plain =~ $any_word;
  for my $word (@words) {
    my $remaining = $plain;
    next unless $remaining =~ /\b$word(e?s)?\b/i;
    for my $phrase (@{$usual{$word}}) { $remaining =~ s/$phrase/ /gi }
    while ($remaining =~ /\b$word(e?s)?\b/gi) {
      $count{$word}{$kind}++;
      push @found, [$file, $line, $kind, $word, $text];
    }
  }
}

sub sources {  # splits code into comments, string literals and the remaining text
  my ($file, $text, $comment) = @_;
  my ($line, $code) = (1, '');
  my $flush = sub { look($file, $line, 'identifiers', $code) if $code =~ /\w/; $code = '' };
  pos($text) = 0;
  while (pos($text) < length $text) {
    if ($comment eq '//' && $text =~ m{\G//([^\n]*)}gc) { look($file, $line, 'comments', $1) }
    elsif ($comment eq '//' && $text =~ m{\GR"(\w*)\((.*?)\)\1"}gcs) { my $s = $2; look($file, $line, 'messages', $s); $line += ($s =~ tr/\n//) }
    elsif ($comment eq '#' && $text =~ m{\G\#([^\n]*)}gc) { look($file, $line, 'comments', $1) }
    elsif ($text =~ m{\G"((?:[^"\\\n]|\\.)*)"}gc) { my $s = $1; look($file, $line, 'messages', $s) unless $code =~ /^\s*#include/ }
    elsif ($comment eq '//' && $text =~ m{\G'(?:[^'\\\n]|\\.)'}gc) { }
    elsif ($text =~ m{\G\n}gc) { $flush->(); $line++ }
    elsif ($text =~ m{\G(\w+|[ ;,.(){}<>=+*&|!?:\[\]-]+)}gc) { $code .= $1 }
    else { $text =~ m{\G(.)}gcs; $code .= $1 }
  }
  $flush->();
}

for my $file (split /\n/, `git ls-files -co --exclude-standard`) {
  next unless -f $file;
  next if $file =~ m{^tests/scripts/words|onnx\.proto$|^LICENSE$|\.css$};
  my $kind = $file =~ /\.(cpp|h|sv|svh|c|in|fbs|js|css)$/ ? '//' : $file =~ /\.(sh|py|cmake|txt|f)$|^scripts\/[^.\/]+$/ ? '#' : $file =~ /\.md$/ ? 'md' : '';
  next unless $kind;
  next if $file =~ m{^tests/.*\.txt$} && $file !~ /CMakeLists/;
  open my $in, '<', $file or die "$file: $!\n";
  local $/;
  my $text = <$in>;
  if ($kind eq 'md') {
    my $line = 0;
    for (split /\n/, $text) { $line++; s/\]\([^)]*\)/]/g; s/`[^`]*`//g; look($file, $line, 'documents', $_) }
  } else { sources($file, $text, $kind) }
}

if ($mode eq '--table') {
  printf "%-12s%s  %s\n", 'word', join('', map { sprintf '%13s', $_ } @kinds), 'say';
  for my $word (@words) {
    printf "%-12s%s  %s\n", $word, join('', map { sprintf '%13d', $count{$word}{$_} // 0 } @kinds), $instead{$word};
  }
  exit 0;
}
# Tests contain programs and data of users, in which any word may stand; their messages are not shown to users.
@found = grep { $_->[2] ne 'messages' || $_->[0] !~ m{^tests/} } @found;
my @shown = grep { $mode eq '--list' ? $_->[2] eq $kind_wanted && (!$word_wanted || $_->[3] eq $word_wanted) : 1 } @found;
for (@shown) {
  my ($file, $line, $kind, $word, $text) = @$_;
  $text =~ s/^\s+//;
  printf "%s:%d: '%s' (say: %s): %s\n", $file, $line, $word, $instead{$word}, substr($text, 0, 120);
}
exit($mode ne '--list' && @shown ? 1 : 0);
