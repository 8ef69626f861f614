# Directories are listed in turn.
set $nfiles=5000

define fileset name=tree,size=0,entries=$nfiles,dirwidth=5,prealloc

define process name=p
{
  thread name=lister,instances=16
  {
    flowop listdir name=list,filesetname=tree
  }
}
