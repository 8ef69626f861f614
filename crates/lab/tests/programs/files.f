# A file server: a file is written, another extended, a third read, one removed, one looked at.
set $nfiles=2000
set $nthreads=50
set $sizes=cvar(type=cvar-gamma,parameters=mean:131072;gamma:1.5)

define fileset name=homes,size=$sizes,entries=$nfiles,dirwidth=20,prealloc=80

define process name=server
{
  thread name=user,instances=$nthreads
  {
    flowop createfile name=new,filesetname=homes,fd=1
    flowop writewholefile name=write,srcfd=1,fd=1,iosize=1m
    flowop closefile name=close1,fd=1
    flowop openfile name=open2,filesetname=homes,fd=1
    flowop appendfilerand name=extend,iosize=16k,fd=1
    flowop closefile name=close2,fd=1
    flowop openfile name=open3,filesetname=homes,fd=1
    flowop readwholefile name=read,fd=1,iosize=1m
    flowop closefile name=close3,fd=1
    flowop deletefile name=delete,filesetname=homes
    flowop statfile name=look,filesetname=homes
  }
}
